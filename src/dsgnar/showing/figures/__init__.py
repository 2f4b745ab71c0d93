"""Figures of a solution, of the course of a run and of the method (Appendix D and figures 1 to 4 of the paper)."""

from dsgnar.showing.figures.ablation import courses
from dsgnar.showing.figures.method import jacobians, probe_curve, run_until
from dsgnar.showing.figures.page import page, save, show, summary

__all__ = ["courses", "jacobians", "page", "probe_curve", "run_until", "save", "show", "summary"]

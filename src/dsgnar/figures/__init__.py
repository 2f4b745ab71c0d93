"""Pictures of a solution, of the course of a run and of the method (Appendix D and figures 3 and 4 of the paper)."""

from dsgnar.figures.page import page, save, show

__all__ = ["page", "save", "show"]

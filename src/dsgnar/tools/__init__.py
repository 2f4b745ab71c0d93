"""Measurements and checks on this machine: speed, the paper's tables, the installation."""

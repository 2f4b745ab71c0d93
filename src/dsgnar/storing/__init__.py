"""Runs on disk: checkpoints, the history, the configuration, run directories."""

"""Sections about what is looked after while trials run: hangs, bad reports, idle GPUs."""

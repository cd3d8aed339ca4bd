"""Sections about the supervision of running trials: hangs, bad reports, idle GPUs, files of failed runs."""

"""Overlays: virtual environments over the platform's own, in which the startup hooks of runs install.

Each run has its own, which ends with it. What its hook has installed is cached for later runs of the
experiment.
"""

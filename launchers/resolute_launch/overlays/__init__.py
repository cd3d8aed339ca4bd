"""Overlays: virtual environments over the platform's own, in which startup hooks of runs install packages.

Each run has its own overlay, which is removed at the end of the run. The packages that its hook has installed
are cached for later runs of the experiment.
"""

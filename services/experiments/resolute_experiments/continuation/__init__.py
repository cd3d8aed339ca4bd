"""Continuing what has ended.

What a person may ask of an ended experiment, how the searcher is asked to resume it, and the configs of new
experiments that are derived from old ones (fork, continue a trial).
"""

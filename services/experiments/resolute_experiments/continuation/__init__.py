"""Continuation of ended experiments and trials.

It has the possible changes to an ended experiment, the requests to the searcher to resume it, and the configs
of new experiments that are derived from old ones (to fork an experiment or to continue a trial).
"""

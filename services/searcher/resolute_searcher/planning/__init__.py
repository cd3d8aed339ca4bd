"""Searches that do not exist: a preview of what a spec would run.

And its simulation in virtual time against learning curves.
"""

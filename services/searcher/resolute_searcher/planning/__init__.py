"""Previews and simulations of searches.

A preview shows the trials that a spec would run. A simulation runs the search in virtual time on learning
curves.
"""

"""Previews and simulations of searches.

A preview of what a spec would run, and its simulation in virtual time against learning curves.
"""

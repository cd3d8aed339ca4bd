"""Turns a user's document into a complete config.

It reads YAML, rewrites older spellings to the current form, merges layers, fills in defaults, and checks
sections against each other.
"""

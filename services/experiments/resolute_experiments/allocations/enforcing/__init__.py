"""Ends of runs that must end, and of what is left of broken ones."""

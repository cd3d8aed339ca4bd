"""Ends runs that must end, and the remaining containers of failed runs."""

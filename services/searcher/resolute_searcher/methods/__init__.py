"""The search methods, one a module."""

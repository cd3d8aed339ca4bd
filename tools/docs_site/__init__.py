"""Builds the site from the pages and the definitions of the repository."""

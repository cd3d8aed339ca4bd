"""The version, at the place of older releases."""

__version__ = "0.38.1"
"""The last release of the API that is served here."""

"""Commands of ``resolute checkpoint``."""

"""Commands of ``resolute user``."""

"""Commands of ``resolute storage``."""

"""Commands of ``resolute token``."""

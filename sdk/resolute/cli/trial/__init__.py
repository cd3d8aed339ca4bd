"""Commands of ``resolute trial``."""

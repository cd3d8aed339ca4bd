"""Commands of ``resolute project``."""

"""Commands of ``resolute experiment``."""

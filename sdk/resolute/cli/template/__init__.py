"""Commands of ``resolute template``."""

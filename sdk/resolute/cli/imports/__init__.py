"""Commands of ``resolute import``."""

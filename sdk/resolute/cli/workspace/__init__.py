"""Commands of ``resolute workspace``."""

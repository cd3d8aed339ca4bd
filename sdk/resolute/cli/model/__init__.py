"""Commands of ``resolute model``."""

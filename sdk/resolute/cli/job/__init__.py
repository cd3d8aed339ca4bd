"""``resolute job``."""

"""The commands of ``resolute search``."""

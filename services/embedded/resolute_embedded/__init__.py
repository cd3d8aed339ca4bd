"""The composition root: every service in one process, for one machine."""

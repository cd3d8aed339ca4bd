"""Memory that a run's processes share with their supervisor."""

"""Names of determined, and what differs here, for the lists of docs/from-determined.md."""

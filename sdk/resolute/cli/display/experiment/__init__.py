"""What is shown of an experiment while somebody waits for it: its log, its progress, and how it ended."""

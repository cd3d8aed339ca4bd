"""How a batch of reports is stored exactly once: parsing, checks of names, conflicts, and the write."""

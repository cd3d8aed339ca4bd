"""Records the reports of engines about containers."""

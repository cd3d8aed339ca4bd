"""Finds that nothing of a run moves, asks its processes where they are, and says who waits for whom."""

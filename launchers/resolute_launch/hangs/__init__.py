"""Detects that a run hangs, asks its processes for their stacks, and names the ranks that keep it waiting."""

"""Reports of engines on containers, and their recording."""

"""Worker processes for calculations, bounded and killed with their caller, and threads for blocking calls."""

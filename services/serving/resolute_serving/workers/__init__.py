"""Processes for calculations, bounded and killed with their caller, and threads for calls that block."""

"""Processes for calculations: bounded in time and memory, and killed with their caller."""

"""What engines report of containers, and what is written down of it."""

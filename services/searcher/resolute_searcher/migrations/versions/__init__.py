"""One revision a module, oldest first."""

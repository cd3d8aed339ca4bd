"""Content that a browser downloads with the rights of its user: checkpoints and media."""

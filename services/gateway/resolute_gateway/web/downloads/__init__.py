"""Content that a browser downloads with the permissions of its user: checkpoints and media."""

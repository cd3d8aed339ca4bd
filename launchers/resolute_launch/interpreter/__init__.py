"""Modules that every interpreter of a run loads at its start. Their directory is on its path."""

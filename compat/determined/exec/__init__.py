"""Modules that run within a task."""

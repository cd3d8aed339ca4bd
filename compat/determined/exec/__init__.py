"""What runs within a task."""

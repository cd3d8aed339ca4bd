"""What engines do in the background: tasks with names, watching, and the removal of what was released."""

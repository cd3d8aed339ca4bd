"""What engines do in the background: tasks with names, and the removal of what was released."""

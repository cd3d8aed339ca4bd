"""What engines do again and again: named tasks, attempts, watching, and the removal of what was released."""

"""Commands that answer questions about what happened: why, what differs, what it took."""

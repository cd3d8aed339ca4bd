"""The tables of logs, the marks of complete logs, and the deletion of lines."""

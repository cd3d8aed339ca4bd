"""The tables of logs, which logs are complete, and the deletion of lines."""

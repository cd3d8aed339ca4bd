"""The fork that runs a script: its start, its end, and the supervisor's view of it."""

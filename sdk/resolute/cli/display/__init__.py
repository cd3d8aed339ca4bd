"""The output of commands: tables, JSON and CSV, log lines, progress of transfers, and curves as text."""

"""What commands print: tables, JSON and CSV, log lines, progress of transfers, and curves as text."""

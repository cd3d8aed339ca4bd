"""What commands print: tables, JSON and CSV, log lines, progress of experiments and of transfers.

Curves as text, and following an experiment to its end.
"""

"""What commands print.

Tables, JSON and CSV, log lines, progress of experiments and of transfers, curves as text, and following an
experiment to its end.
"""

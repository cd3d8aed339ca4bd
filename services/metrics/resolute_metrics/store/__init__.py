"""The tables of metrics and what lies in them: rows in columns, packed into blocks.

Grouped in streams with running aggregates; and their deletion.
"""

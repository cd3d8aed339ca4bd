"""The state machine of one search: its state, the events it accepts and why it refuses others.

What it decides upon them, and replay, which decides a recorded log again. No database, no network, no
clock.
"""

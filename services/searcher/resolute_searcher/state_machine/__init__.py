"""The state machine of one search.

Its state, the events it accepts and why it refuses others, what it decides upon them, and replay, which
decides a recorded log again. No database, no network, no clock.
"""

"""Asynchronous successive halving: by promotion, by stopping, and time-driven.

All three share the rungs and the state of a bracket.
"""

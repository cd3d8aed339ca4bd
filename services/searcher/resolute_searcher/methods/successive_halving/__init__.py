"""Asynchronous successive halving: by promotion, by stopping, and time-driven.

With the rungs and the state of a bracket that they share.
"""

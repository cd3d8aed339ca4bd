"""Asynchronous successive halving, by promotion, by stopping, and time-driven.

The rungs and the state of a bracket are shared by all three.
"""

"""Processes ended runs.

It combines the exits of a run's containers into one, and applies log policies to its lines. A list of rules
decides the effect on the trial, and one transaction records the decision.
"""

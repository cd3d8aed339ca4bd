"""Processing of ended runs.

The exits of its containers are summarised to one, log policies are searched for in its lines, a pure list
of rules decides what the end means for the trial, and the decision is recorded in one transaction.
"""

"""Conversion to and from the messages of the contract.

Specs, entries of the log with their events, operations and actions, and methods that the contract knows by
name only. What is stored as serialized messages is read and written here.
"""

"""Conversion to and from the messages of the contract.

It converts specs, log entries with their events, operations and actions, and methods that the contract knows
only by name. It also reads and writes the stored messages.
"""

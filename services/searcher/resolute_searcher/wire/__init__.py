"""To and from the messages of the contract: specs, entries of the log with their events.

Operations and actions, and methods that the contract knows by name only. What is stored as serialized
messages is read and written here.
"""

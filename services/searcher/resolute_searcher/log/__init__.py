"""The contents of a search's log.

An entry consists of an event, the operations that the search decided, and the actions by which other services
carry them out. The package has only values: nothing here decides or stores.
"""

"""The contents of a search's log.

Events (what happened), the operations that the search decided, the actions that others carry out for them,
and the entry that ties the three together. Values only; nothing here decides or stores.
"""

"""The search methods, one a module.

With the protocol that they share (base) and the registry that maps specs and plugins to them. A method is
fed events and yields operations.
"""

"""The search methods, one a module.

They share a protocol (base); the registry maps specs and plugins to them. A method is fed events and yields
operations.
"""

"""The search methods, one a module.

They share a protocol (base); the registry maps specs and plugins to them. A method gets events and yields
operations.
"""

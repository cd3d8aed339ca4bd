"""The search methods, one for each module.

They share the protocol in `base`. `registry` maps specs and plugins to them. A method gets events and yields
operations.
"""

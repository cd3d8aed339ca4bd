"""The RPCs of the searcher service.

Requests become values, the domain is called, results become responses. One module for each group of calls;
the searcher module puts them together.
"""

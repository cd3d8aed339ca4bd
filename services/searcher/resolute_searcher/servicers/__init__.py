"""The RPCs of the searcher service: requests become values, the domain is called.

Results become responses. One module for each group of calls; the searcher module puts them together.
"""

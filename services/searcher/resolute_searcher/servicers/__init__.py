"""The RPCs of the searcher service."""

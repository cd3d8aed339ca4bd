"""Queries of lines: filters, regular expressions, pages, and following a growing log."""

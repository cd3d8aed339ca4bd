"""Checks of requests, such as their sizes, and pages that fit one message."""

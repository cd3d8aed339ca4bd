"""Checks of requests: required fields, filters, sizes; and pages that fit one message."""

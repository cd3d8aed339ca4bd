"""Experiments that other clusters ran: read, and recorded as they were there."""

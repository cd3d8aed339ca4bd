"""Calls of the contract over HTTP, which are forwarded to the services."""

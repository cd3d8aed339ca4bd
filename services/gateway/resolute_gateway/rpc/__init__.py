"""Calls of the contract over HTTP, passed on to the services."""

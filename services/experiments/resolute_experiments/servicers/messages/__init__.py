"""Turns rows of this service into messages of the contract."""

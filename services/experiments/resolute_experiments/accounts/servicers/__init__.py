"""Handlers of accounts, roles, workspaces and what belongs to them, and their response messages."""

"""Handlers of accounts, roles, workspaces and related objects, and their response messages."""

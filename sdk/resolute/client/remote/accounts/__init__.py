"""Calls about users, tokens, roles, workspaces and projects."""

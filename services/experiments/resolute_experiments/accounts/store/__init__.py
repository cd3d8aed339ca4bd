"""SQL of users, tokens, roles, workspaces and projects, and the lookup of each object's workspace."""

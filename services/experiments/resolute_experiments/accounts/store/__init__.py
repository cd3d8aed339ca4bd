"""SQL of users, tokens, roles, workspaces and projects, and which workspace each object belongs to."""

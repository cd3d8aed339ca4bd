"""The rules of access: the roles that calls require in workspaces, and the calls of trials and services."""

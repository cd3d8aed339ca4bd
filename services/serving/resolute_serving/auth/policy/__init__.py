"""The rules of access: what each call requires, in which workspaces; what trials and services may call."""

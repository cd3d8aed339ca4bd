"""Commands about accounts and permissions.

`resolute user`, `token`, `workspace`, `project` and `audit`, and the reading of passwords.
"""

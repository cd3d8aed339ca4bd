"""Commands about who may do what.

`resolute user`, `token`, `workspace`, `project` and `audit`, and the reading of passwords.
"""

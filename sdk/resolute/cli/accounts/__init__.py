"""Commands about who may do what: `resolute user`, `token`, `workspace`, `project` and `audit`.

And the reading of passwords.
"""

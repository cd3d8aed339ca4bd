"""Who may call what: signed tokens, the public keys that verify them.

And one table of permissions with an entry for every RPC.
"""

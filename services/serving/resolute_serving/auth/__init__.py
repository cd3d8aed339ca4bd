"""Who may call what.

Signed tokens, the public keys that verify them, and one table of permissions with an entry for every RPC.
"""

"""Who may call what.

Signed tokens, the public keys that verify them, and in `policy` the rules, with an entry for every RPC.
"""

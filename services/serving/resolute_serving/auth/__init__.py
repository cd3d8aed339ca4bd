"""Access control: which caller may make which call.

It has signed tokens, the public keys that verify them, and in `policy` the rules, with an entry for every
RPC.
"""

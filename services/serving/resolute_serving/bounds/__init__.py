"""How much one call may ask for: bytes, elements, depth, and how much all calls together may hold.

Every request passes through here after its caller is known and before its handler runs. What only one service
can judge, such as the trials of a search, is bounded where that service reads it.
"""

"""Messages between ranks.

Their binary format and signature, values as frames without copies, bundles of many ranks' parts, sockets
with detection of lost peers, and what forked children must not inherit.
"""

"""Messages between ranks: their binary format and signature, values as frames without copies.

Bundles of many ranks' parts, sockets with detection of lost peers, and what forked children must not
inherit.
"""

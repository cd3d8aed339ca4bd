"""Messages between ranks.

It has their binary format and signature, values as frames without copies, bundles of the parts of many ranks,
sockets that detect lost peers, and the closing of connections in forked children.
"""

"""Reaching a cluster.

Its address and token, the embedded cluster's home, stored credentials, the session that all calls share,
and the ways to read answers that come in pages or streams.
"""

"""Reaching a cluster: its address and token, the embedded cluster's home, stored credentials.

The session that all calls share, and the ways to read answers that come in pages or streams.
"""

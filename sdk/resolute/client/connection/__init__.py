"""The connection to a cluster.

It has the address and token, the embedded cluster's home, stored credentials, the session that all calls
share, and readers for paged and streamed responses.
"""

"""The bounds of calls: bytes, elements and depth of one request, and the memory of all requests together.

Every request is checked here after its caller is known and before its handler runs. Bounds that only one
service can judge, such as the trials of a search, are checked by that service.
"""

"""The gRPC handlers: they parse a request, change or read this service's database.

And build a response (`messages` turns rows into messages of the contract).
"""

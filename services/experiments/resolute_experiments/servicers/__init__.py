"""The gRPC handlers.

They parse a request, change or read this service's database, and build a response (`messages` turns rows
into messages of the contract).
"""

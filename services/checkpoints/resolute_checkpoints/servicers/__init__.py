"""Handlers of the contract, one module a gRPC service."""

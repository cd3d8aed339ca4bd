"""The gRPC handlers of the registry, one module for each service.

They convert messages to and from values of the domain, and call the registry.
"""

"""The gRPC handlers of the registry, one module a service.

They convert messages to and from values of the domain and call it.
"""

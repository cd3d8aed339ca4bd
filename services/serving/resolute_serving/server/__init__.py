"""How a service is run: the interface of a service.

The gRPC server with its interceptors and health checks, channels to the other services, and the settings
and bootstrap of a service that runs alone.
"""

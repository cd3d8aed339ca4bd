"""Runs services.

It has the interface of a service, the gRPC server with its interceptors and health checks, channels to the
other services, and the settings and bootstrap of a service that runs alone.
"""

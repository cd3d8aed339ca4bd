"""The gRPC handlers, one module a service.

And the conversion of their messages to and from values of the domain.
"""

"""The only package of the SDK that uses gRPC directly.

It has channels and their interceptors, lists of checkpoint files that exceed one message, and the providers
of object stores by name.
"""

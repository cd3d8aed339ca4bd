"""The only package of the SDK that uses gRPC directly.

Channels and their interceptors, checkpoint file lists that exceed one message, and the providers of object
stores by name.
"""

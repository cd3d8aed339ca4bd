"""The only place of the SDK that knows gRPC.

Channels and their interceptors, checkpoint file lists that exceed one message, and the providers of object
stores by name.
"""

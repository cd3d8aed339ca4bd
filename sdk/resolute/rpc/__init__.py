"""The only place of the SDK that knows gRPC: channels and their interceptors.

Checkpoint file lists that exceed one message, and the providers of object stores by name.
"""

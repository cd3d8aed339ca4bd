"""The local engine: supervisors run as processes of this machine that outlive the services.

The state of a container is read from its run directory alone.
"""

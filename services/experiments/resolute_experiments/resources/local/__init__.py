"""The resource manager of one machine: supervisors run as processes that outlive this service.

What became of a container is read from its run directory alone.
"""

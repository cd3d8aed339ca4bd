"""This machine: supervisors run as processes that outlive the services.

The state of a container is read from its run directory alone.
"""

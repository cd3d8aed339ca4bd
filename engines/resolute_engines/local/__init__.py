"""This machine: supervisors run as processes that outlive the services.

What became of a container is read from its run directory alone.
"""

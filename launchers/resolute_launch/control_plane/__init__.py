"""The supervisor's side of its calls to the services: the client with its deadlines.

The timeout for an outage of the control plane, and the preemption signal, which is watched and merged with
what this machine decides.
"""

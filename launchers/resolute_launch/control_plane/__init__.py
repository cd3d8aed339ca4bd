"""The supervisor's side of its calls to the services.

It has the client with its deadlines, the timeout for an outage of the control plane, and the preemption
signal, which is watched and merged with the decisions of this machine.
"""

"""The preemption service.

It follows the signals of all allocations at the experiments service, and broadcasts them to watching
supervisors.
"""

"""The parts of a run's container.

The task and its information for the trial, the model definition, the environment, the process of the
entrypoint, and the collection of its output.
"""

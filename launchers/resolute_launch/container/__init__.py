"""The parts of a run's container.

They are the task and its information for the trial, the model definition, the environment, the process of the
entrypoint, and the collection of its output.
"""

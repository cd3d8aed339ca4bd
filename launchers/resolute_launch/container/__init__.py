"""What a container of a run is made of.

The task and what the trial is told about it, the model definition, the environment, the process of the
entrypoint, and the collection of its output.
"""

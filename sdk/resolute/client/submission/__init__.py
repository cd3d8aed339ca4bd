"""The submission of an experiment.

Reading and changing its config, choosing the files of its model definition, and packing them.
"""

"""What an experiment is submitted with.

Reading and changing its config, choosing the files of its model definition, and packing them.
"""

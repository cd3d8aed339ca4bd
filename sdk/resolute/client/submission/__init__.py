"""What an experiment is submitted with: reading and changing its config.

Choosing the files of its model definition, and packing them.
"""

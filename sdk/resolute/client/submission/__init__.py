"""The submission of an experiment.

It reads and changes the config, chooses the files of the model definition, and packs them.
"""

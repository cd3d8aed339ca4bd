"""What a user writes and is given: the base class ``PyTorchTrial``, the contexts, callbacks.

Learning-rate schedulers and hyperparameters, trials in the style of the first releases, and the import of a
trial's class from a model definition.
"""

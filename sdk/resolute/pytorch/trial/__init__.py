"""The part of a training that users write or call.

It has the base class ``PyTorchTrial``, the contexts, callbacks, learning-rate schedulers and hyperparameters,
trials in the style of the first releases, and the import of a trial's class from a model definition.
"""

"""The runtime information of a training process.

The address of the services, the experiment's config, its share of a batch, the code of a checkpoint; off
cluster, a sample of the hyperparameters and the directory in which the run is recorded.
"""

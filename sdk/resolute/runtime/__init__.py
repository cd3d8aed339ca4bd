"""The runtime information of a training process.

It has the address of the services, the experiment's config, the process's share of a batch, and the code of a
checkpoint; off cluster, a sample of the hyperparameters and the directory in which the run is recorded.
"""

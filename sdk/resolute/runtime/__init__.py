"""What a training process learns of its run before it trains.

How to reach the services, the experiment's config, its share of a batch, the code of a checkpoint; off
cluster, a sample of the hyperparameters and the directory that the run is recorded in.
"""

"""The part of the SDK that services and engines may import, besides `resolute.api` and `resolute.errors`.

It has what both sides of a boundary must read and write alike: archives of model definitions, the spool's
files, documents that people write, JSON-like values, hyperparameters of a config, names of objects,
identities of processes, clocks and sizes. Nothing here imports any other part of the SDK.
"""

"""The part of the SDK that services and engines may import, besides `resolute.api` and `resolute.errors`.

It defines the formats that both sides of a boundary read and write: archives of model definitions, spool
files, configs and settings, JSON-like values, hyperparameters, and names of objects. It also has identities
of processes, clocks and sizes. Nothing here imports another part of the SDK.
"""

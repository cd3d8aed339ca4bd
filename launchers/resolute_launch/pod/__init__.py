"""The processes in a Kubernetes Pod: the shim of its supervisor, and the sender of its remaining data.

Both see one volume that lasts as long as the Pod::

    run/        the run directory
    kept        locked while the shim lives; there since it began

`shim` is the first process of the trial's container, `sender` that of the container beside it.
"""

"""From where checkpoints shall lie to the objects there."""

from __future__ import annotations

import importlib

from resolute.contracts.object_stores.client import ObjectStoreClient
from resolute.contracts.object_stores.location import BucketStorage
from resolute.errors import FailedPreconditionError


def open_client(storage: BucketStorage) -> ObjectStoreClient:
    """Returns the objects of a bucket. Of the libraries of stores only the one for it is imported.

    Raises:
        FailedPreconditionError: The library is not installed, or there are no credentials.
    """
    try:
        module = importlib.import_module(f"resolute.contracts.object_stores.{storage.kind}")
    except ImportError as failure:
        raise FailedPreconditionError(
            f"checkpoints in a store of type {storage.kind} need a library that is not installed "
            f"({failure}); pip install 'resolute-train[{storage.kind}]'"
        ) from failure
    objects: ObjectStoreClient = module.open_bucket(storage)
    return objects

"""From where checkpoints shall lie to the objects there."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from resolute.errors import FailedPreconditionError
from resolute.object_stores.client import ObjectStoreClient

if TYPE_CHECKING:
    from resolute.core.checkpoint.storage import BucketStorage


def open_client(storage: BucketStorage) -> ObjectStoreClient:
    """Returns the objects of a bucket. Of the libraries of stores only the one for it is imported.

    Raises:
        FailedPreconditionError: The library is not installed, or there are no credentials.
    """
    try:
        module = importlib.import_module(f"resolute.object_stores.{storage.kind}")
    except ImportError as failure:
        raise FailedPreconditionError(
            f"checkpoints in a store of type {storage.kind} need a library that is not installed "
            f"({failure}); pip install 'resolute[{storage.kind}]'"
        ) from failure
    objects: ObjectStoreClient = module.open_bucket(storage)
    return objects

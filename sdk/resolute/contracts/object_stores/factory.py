"""Opens stores and buckets. It imports only the provider library that is needed."""

from __future__ import annotations

import importlib
import os

from resolute.contracts.distribution import install_command
from resolute.contracts.object_stores.access import StoreAccess
from resolute.contracts.object_stores.bucket import Bucket, Store
from resolute.contracts.object_stores.location import BucketStorage
from resolute.errors import FailedPreconditionError


def open_store(kind: str, access: StoreAccess, *, extras: str = "") -> Store:
    """Returns connections to a store.

    Args:
        kind: ``s3``, ``gcs`` or ``azure``.
        access: How it is reached.
        extras: Extras of the distribution that have the library; empty for the one of this name.

    Raises:
        FailedPreconditionError: The library is not installed, or the credentials cannot be used.
        InvalidArgumentError: The address of the store is not one.
    """
    try:
        module = importlib.import_module(f"resolute.contracts.object_stores.{kind}")
    except ImportError as failure:
        raise FailedPreconditionError(
            f"{access.caller} needs a library for stores of type {kind} that is not installed ({failure}); "
            + install_command(extras or kind)
        ) from failure
    store: Store = module.open_store(access)
    return store


def open_bucket(storage: BucketStorage) -> Bucket:
    """Returns a bucket as a script reaches it, with credentials of its own.

    Raises:
        FailedPreconditionError: The library is not installed, or there are no credentials.
        InvalidArgumentError: The address of the store is not one.
    """
    return open_store(storage.kind, _access(storage)).bucket(storage.bucket)


def _access(storage: BucketStorage) -> StoreAccess:
    """Completes what was given by the variables that the providers' own tools read."""
    endpoint_url, region = storage.endpoint_url, ""
    secret_key, connection_string = storage.secret_key, storage.connection_string
    if storage.kind == "s3":
        endpoint_url = endpoint_url or _variable("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        region = _variable("AWS_REGION", "AWS_DEFAULT_REGION")
    elif storage.kind == "azure":
        if not endpoint_url:
            connection_string = connection_string or _variable("AZURE_STORAGE_CONNECTION_STRING")
        secret_key = secret_key or _variable("AZURE_STORAGE_KEY")
    return StoreAccess(
        endpoint_url=endpoint_url,
        access_key=storage.access_key,
        secret_key=secret_key,
        connection_string=connection_string,
        region=region,
    )


def _variable(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")

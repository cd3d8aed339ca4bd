"""Names of checkpoint storages as one line of text, for tokens and operators' settings."""

from __future__ import annotations

from resolute.api.checkpoints.v1 import storage_pb2

_SCHEMES = {
    storage_pb2.Storage.PROVIDER_S3: "s3",
    storage_pb2.Storage.PROVIDER_GCS: "gs",
    storage_pb2.Storage.PROVIDER_AZURE: "azure",
}


def storage_name(storage: storage_pb2.Storage) -> str:
    """Writes a storage; equal storages give equal text, other ones another.

    Returns:
        The path of a directory; of a bucket ``s3://BUCKET/PREFIX``, or ``s3+http://minio:9000/BUCKET/PREFIX``
        if the store is not the provider's own. Empty for a storage of no known kind.
    """
    kind = storage.WhichOneof("kind")
    if kind == "directory":
        return storage.directory.path
    scheme = _SCHEMES.get(storage.bucket.provider, "")
    if kind != "bucket" or not scheme:
        return ""
    bucket = storage.bucket
    start = f"{scheme}+{bucket.endpoint_url.rstrip('/')}/" if bucket.endpoint_url else f"{scheme}://"
    return f"{start}{bucket.bucket}/{bucket.prefix}".rstrip("/")

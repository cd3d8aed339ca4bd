"""The location of a bucket, and the credentials that were given with it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BucketStorage:
    """A bucket of an object store."""

    kind: str
    """``s3``, ``gcs`` or ``azure``."""
    bucket: str
    """Its name; of Azure, that of the container."""
    prefix: str = ""
    """Begins the names of all objects; without slashes around it."""
    endpoint_url: str = ""
    """Address of the store; of Azure, that of the account. Empty for what the environment says."""
    access_key: str = field(default="", repr=False)
    """Name of the key; empty for what the environment says."""
    secret_key: str = field(default="", repr=False)
    """The key's secret; of Azure, the credential."""
    connection_string: str = field(default="", repr=False)
    """Of Azure: address and credential in one."""

    @property
    def has_secrets(self) -> bool:
        """Whether credentials were given with it."""
        return bool(self.access_key or self.secret_key or self.connection_string)

"""The service's settings for buckets, whether they belong to the operator or to users."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from resolute.contracts.clock import Clock
from resolute.contracts.object_stores.access import StoreAccess
from resolute_checkpoints.domain.checkpoint import Provider

_CALLER = "the checkpoints service"
_BUCKET_HELP = (
    "or set RESOLUTE_CHECKPOINTS_CREATE_BUCKETS=true for the checkpoints service, which then makes it"
)
_CREDENTIALS_HELP = {
    Provider.S3: "set RESOLUTE_CHECKPOINTS_S3_ACCESS_KEY and RESOLUTE_CHECKPOINTS_S3_SECRET_KEY for it",
    Provider.GCS: (
        "set RESOLUTE_CHECKPOINTS_GCS_CREDENTIALS, or GOOGLE_APPLICATION_CREDENTIALS, to the file with the "
        "key of a service account: URLs are signed by it"
    ),
    Provider.AZURE: (
        "set RESOLUTE_CHECKPOINTS_AZURE_CONNECTION_STRING, or RESOLUTE_CHECKPOINTS_AZURE_ACCOUNT_URL and "
        "RESOLUTE_CHECKPOINTS_AZURE_ACCOUNT_KEY, for the checkpoints service"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSettings:
    """The settings for buckets: credentials, regions and URLs."""

    access_key: str = ""
    """S3: key id; empty for what the environment, then the credentials file says."""
    secret_key: str = field(default="", repr=False)
    """S3: secret of the key."""
    region: str = ""
    """S3: region of the buckets; empty to ask the store."""
    gcs_credentials: Path | None = None
    """Google: file with the key of a service account; None for what the environment says."""
    azure_connection_string: str = field(default="", repr=False)
    """Azure: address and key of the account in one."""
    azure_account_url: str = ""
    """Azure: address of the account, where there is no connection string."""
    azure_account_key: str = field(default="", repr=False)
    """Azure: key of the account at that address."""
    create: bool = False
    """Whether buckets that are not there are made."""
    url_seconds: int = 6 * 3600
    """How long a presigned URL can be used."""

    def access(self, provider: Provider, *, endpoint_url: str, clock: Clock) -> StoreAccess:
        """Returns the address and credentials of a store.

        Args:
            provider: Whose it is.
            endpoint_url: Its address; empty for the provider's own. Azure's is that of the service's account.
            clock: Tells when URLs expire.
        """
        # Here: a service starts without the library that it imports.
        from resolute_checkpoints.blobs.buckets.guarded_pool import guard

        azure = provider is Provider.AZURE
        return StoreAccess(
            endpoint_url=self.azure_account_url if azure else endpoint_url,
            access_key=self.access_key,
            secret_key=self.azure_account_key if azure else self.secret_key,
            connection_string=self.azure_connection_string,
            credentials_file=self.gcs_credentials,
            region=self.region,
            machine_role=False,
            signs=True,
            url_seconds=self.url_seconds,
            clock=clock,
            guard=guard,
            caller=_CALLER,
            credentials_help=_CREDENTIALS_HELP[provider],
            bucket_help=_BUCKET_HELP,
        )

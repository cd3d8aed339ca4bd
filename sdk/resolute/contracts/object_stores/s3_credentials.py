"""The sources of credentials for S3."""

from __future__ import annotations

import os
from typing import final

import urllib3
from minio.credentials.credentials import Credentials
from minio.credentials.providers import (
    AWSConfigProvider,
    ChainedProvider,
    EnvAWSProvider,
    EnvMinioProvider,
    IamAwsProvider,
    Provider,
    StaticProvider,
)
from minio.error import MinioException

from resolute.contracts.object_stores.access import StoreAccess

_ROLE_TIMEOUT = urllib3.Timeout(connect=1.0, read=5.0)


def credentials_of(access: StoreAccess) -> Provider:
    """Returns the given credentials; else those of the environment, the credentials file, or the machine."""
    if access.access_key:
        return StaticProvider(access.access_key, access.secret_key)
    chain: list[Provider] = [EnvAWSProvider(), EnvMinioProvider(), AWSConfigProvider()]
    return ChainedProvider([*chain, _MachineRole()] if access.machine_role else chain)


@final
class _MachineRole(Provider):
    """The role of an Amazon machine or container. On other machines the lookup fails quickly."""

    def __init__(self) -> None:
        pool = urllib3.PoolManager(timeout=_ROLE_TIMEOUT, retries=urllib3.Retry(total=0))
        self._provider = IamAwsProvider(http_client=pool)

    def retrieve(self) -> Credentials:
        """Asks for the role's credentials.

        Raises:
            ValueError: There is no role.
        """
        if os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            raise ValueError("AWS_EC2_METADATA_DISABLED says not to ask for the role of the machine")
        try:
            return self._provider.retrieve()
        except (urllib3.exceptions.HTTPError, MinioException, OSError) as failure:
            raise ValueError("the machine has no role") from failure

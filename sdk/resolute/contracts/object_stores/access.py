"""The address and the credentials by which a process reaches an object store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import InvalidArgumentError, Violation

if TYPE_CHECKING:
    from urllib3 import PoolManager

CONNECT_SECONDS, READ_SECONDS = 5.0, 60.0
"""How long a store may take to accept a connection, and to send or take something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAccess:
    """The address and credentials of a store, and hints for the error messages about them."""

    endpoint_url: str = ""
    """Address of the store; for Azure that of the account. Empty for the provider's own."""
    access_key: str = field(default="", repr=False)
    """S3: name of the key; empty for what the environment, then the credentials file says."""
    secret_key: str = field(default="", repr=False)
    """S3: the key's secret. Azure: the account's key, or a token."""
    connection_string: str = field(default="", repr=False)
    """Azure: address and key of the account in one."""
    credentials_file: Path | None = None
    """Google: file with the key of a service account; None for what the environment says."""
    region: str = ""
    """S3: region of the buckets; empty to ask the store."""
    machine_role: bool = True
    """S3: whether the machine may be asked for the credentials of its role."""
    signs: bool = False
    """Whether URLs are signed: credentials that cannot sign are refused then."""
    url_seconds: int = 6 * 3600
    """How long a signed URL is valid."""
    clock: Clock = SYSTEM_CLOCK
    """Tells from when on."""
    guard: Callable[[PoolManager], PoolManager] = lambda pool: pool
    """S3: limits where connections may lead."""
    caller: str = "this process"
    """Names who uses the store, in error messages."""
    credentials_help: str = ""
    """What to do about credentials, in error messages; empty for what holds for any script."""
    bucket_help: str = "or correct its name"
    """What to do about a bucket that does not exist, after ``make the bucket,``."""


def parse_address(address: str, *, field: str) -> SplitResult:
    """Reads the address of a store.

    Args:
        address: The address.
        field: Where it was given, for the message.

    Raises:
        InvalidArgumentError: It is not one.
    """
    url = urlsplit(address)
    if (
        url.scheme in {"http", "https"}
        and url.netloc
        and not (url.path.strip("/") or url.query or url.username)
    ):
        return url
    # The text itself may hold a secret.
    message = f"{field} is not the address of a store; write it as https://host or http://host:port"
    raise InvalidArgumentError(message, violations=[Violation(field, message)])

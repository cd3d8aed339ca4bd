"""The address of an Azure storage account, without the secrets that may be written beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from resolute.errors import InvalidConfigError, Violation

_SUFFIX = "core.windows.net"
_EMULATOR = "http://127.0.0.1:10000/devstoreaccount1"


def account_url(section: Mapping[str, Any]) -> str:
    """Returns the account's address that a ``checkpoint_storage`` of type ``azure`` names.

    Args:
        section: The section, with ``account_url`` or ``connection_string``.

    Raises:
        InvalidConfigError: No address can be made of them.
    """
    if section.get("account_url"):
        return _checked(section["account_url"], field="account_url")
    words = (part.partition("=") for part in section["connection_string"].split(";"))
    parts = {name.strip(): value.strip() for name, _, value in words}
    if parts.get("UseDevelopmentStorage", "").lower() == "true":
        return _EMULATOR
    if "BlobEndpoint" in parts:
        return _checked(parts["BlobEndpoint"], field="connection_string")
    if not parts.get("AccountName"):
        raise _unreadable(
            "connection_string", "names no account: expected AccountName=… or BlobEndpoint=… in it"
        )
    protocol = parts.get("DefaultEndpointsProtocol", "https")
    return f"{protocol}://{parts['AccountName']}.blob.{parts.get('EndpointSuffix', _SUFFIX)}"


def _checked(url: str, *, field: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc or "@" in parts.netloc:
        raise _unreadable(field, "names no account: expected https://<account>.blob.core.windows.net")
    # A signature may follow the address.
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _unreadable(field: str, problem: str) -> InvalidConfigError:
    # What is in it may be secret.
    path = f"checkpoint_storage.{field}"
    return InvalidConfigError(f"{path} {problem}", violations=[Violation(path, problem)])

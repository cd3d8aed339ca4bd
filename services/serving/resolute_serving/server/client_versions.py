"""Refuses clients that are older than the server supports."""

from __future__ import annotations

from collections.abc import Mapping

from resolute.contracts import distribution
from resolute.contracts.calls.client_version import SDK, release_of
from resolute.errors import ClientTooOldError, InvalidArgumentError

OLDEST_SDK = "0.1.0"
"""The oldest version of the SDK that is accepted, unless a setting says otherwise."""
_VARIABLE = "RESOLUTE_OLDEST_CLIENT"


class ClientVersions:
    """The accepted versions of clients.

    Clients without a version, with another name or with an unreadable version are accepted: the contract
    itself is compatible, and only clients that are known to be too old are refused.

    Args:
        oldest_sdk: The oldest accepted version of the SDK.
    """

    def __init__(self, oldest_sdk: str = OLDEST_SDK) -> None:
        self._oldest = oldest_sdk
        self._oldest_release = release_of(oldest_sdk) or ()

    def check(self, header: str) -> None:
        """Lets a client pass or refuses it.

        Args:
            header: The metadata ``x-resolute-client``, ``NAME/VERSION``; empty when there was none.

        Raises:
            ClientTooOldError: The client is older than the oldest that is accepted.
        """
        name, _, version = header.partition("/")
        release = release_of(version)
        if name != SDK or release is None or release >= self._oldest_release:
            return
        raise ClientTooOldError(
            f"the client is version {version[:40]}, and this server accepts {self._oldest} and newer; "
            f"upgrade it: pip install --upgrade '{distribution.NAME}>={self._oldest}'",
            metadata={"client": name, "version": version[:40], "oldest_version": self._oldest},
        )


def oldest_client(variables: Mapping[str, str]) -> str:
    """Reads the oldest accepted version of the SDK from RESOLUTE_OLDEST_CLIENT (0.1.0).

    Raises:
        InvalidArgumentError: The variable holds no version.
    """
    version = variables.get(_VARIABLE) or OLDEST_SDK
    if release_of(version) is None:
        raise InvalidArgumentError(f"{_VARIABLE} is {version!r}; a version such as {OLDEST_SDK} was expected")
    return version

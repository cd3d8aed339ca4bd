"""The peer of a call that a gateway forwards. The gateway names its peer, and a key proves that it may."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from resolute.errors import InvalidArgumentError

PEER_HEADER = "x-resolute-peer"
"""Metadata of a call that a gateway passes on: its key, a space, and its peer as gRPC names peers."""
KEY_VARIABLE = "RESOLUTE_GATEWAY_KEY"
_LEAST_KEY = 32


class ForwardedPeers:
    """Writes and reads the peers of gateways.

    Args:
        key: Secret that the gateway and the services of a cluster share; empty to trust no gateway.

    Raises:
        InvalidArgumentError: The key is too short, or has other characters than letters and digits.
    """

    def __init__(self, key: str = "") -> None:
        if key and (len(key) < _LEAST_KEY or not key.isascii() or not key.isalnum()):
            raise InvalidArgumentError(
                f"{KEY_VARIABLE} must have {_LEAST_KEY} letters and digits or more: "
                "`openssl rand -hex 32` makes them"
            )
        self._key = key

    def metadata(self, peer: str) -> tuple[tuple[str, str], ...]:
        """What a gateway adds to a call that it passes on.

        Args:
            peer: Who called the gateway, as gRPC names peers: ``ipv4:10.0.0.7:5123``.
        """
        return ((PEER_HEADER, f"{self._key} {peer}"),) if self._key and peer else ()

    def peer(self, metadata: Mapping[str, object], direct: str) -> str:
        """Who makes a call.

        Args:
            metadata: What came with it.
            direct: The other end of the connection.
        """
        if not self._key:
            return direct
        key, _, peer = str(metadata.get(PEER_HEADER, "")).partition(" ")
        return peer if peer and hmac.compare_digest(key.encode(), self._key.encode()) else direct

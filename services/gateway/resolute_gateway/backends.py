"""Channels to the services, selected by the name of a call."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from resolute.contracts.calls.keepalive import KEEPALIVE_OPTIONS
from resolute.contracts.calls.message_sizes import MAX_ANSWER_BYTES
from resolute.contracts.calls.tls import ClientTls, aio_channel, blocking_channel
from resolute_serving.auth.forwarded_peers import ForwardedPeers

_OPTIONS: tuple[tuple[str, str | int], ...] = (
    *KEEPALIVE_OPTIONS,
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.max_send_message_length", MAX_ANSWER_BYTES),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
    # With it, gRPC takes megabytes of each stream in advance: those of clients that read nothing would
    # gather here, 30 MB for each follower of a long log.
    ("grpc.http2.bdp_probe", 0),
    # What it takes of a stream before its client has read what came last. A client that reads is sent whole
    # messages as before: gRPC asks for the rest of one as soon as somebody waits for it.
    ("grpc.http2.lookahead_bytes", 16 << 10),
)
_PREFIX = "/resolute.api."
_OWN_PREFIX = "/resolute.api.gateway."


class Backends:
    """The channels to the services. Close it after use.

    Args:
        addresses: ``host:port`` by short name of the service, such as ``metrics``; ``*`` for every other.
        tls: TLS settings; None for plain ports.
        own_port: Loopback port on which this process serves its own calls; zero for none.
        peers: Names the gateway's caller to the services.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        *,
        tls: ClientTls | None = None,
        own_port: int = 0,
        peers: ForwardedPeers | None = None,
    ) -> None:
        self._addresses, self._tls = addresses, tls
        self._blocking: dict[str, grpc.Channel] = {}
        channels = {
            address: aio_channel(address, tls=tls, options=_OPTIONS) for address in set(addresses.values())
        }
        self.peers = peers or ForwardedPeers()
        """Tells services who called the gateway."""
        self._channels = {name: channels[address] for name, address in addresses.items()}
        self._own = aio_channel(f"127.0.0.1:{own_port}", tls=None, options=_OPTIONS) if own_port else None

    def channel(self, method: str) -> grpc.aio.Channel | None:
        """The channel to the service of a call; None if no service has such calls.

        Args:
            method: ``/package.Service/Method``.
        """
        name = _service(method)
        return self._channels.get(name) or (self._channels.get("*") if name else None)

    def blocking_channel(self, method: str) -> grpc.Channel | None:
        """The same, for the threads of calls that stream their requests."""
        name = _service(method)
        address = self._addresses.get(name) or (self._addresses.get("*") if name else None)
        if address is None:
            return None
        if address not in self._blocking:
            self._blocking[address] = blocking_channel(address, tls=self._tls, options=_OPTIONS)
        return self._blocking[address]

    def any_channel(self, method: str) -> grpc.aio.Channel | None:
        """The same, also for calls that this process serves itself."""
        return self._own if self._own and method.startswith(_OWN_PREFIX) else self.channel(method)

    async def close(self) -> None:
        """Closes the connections to the services."""
        for channel in {*self._channels.values(), *([self._own] if self._own else ())}:
            await channel.close()
        for blocking in self._blocking.values():
            blocking.close()


def _service(method: str) -> str:
    """Short name of the service of a call; empty if it is none of the contract's."""
    return method.removeprefix(_PREFIX).partition(".")[0] if method.startswith(_PREFIX) else ""

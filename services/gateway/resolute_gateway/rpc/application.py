"""The calls of the contract as an ASGI application of the protocol library."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.server import ConnectASGIApplication, Endpoint
from google.protobuf.descriptor import MethodDescriptor

from resolute.contracts.calls.methods import methods, path_of
from resolute_gateway.backends import Backends
from resolute_gateway.rpc.encoded import Encoded, PassingCodec
from resolute_gateway.rpc.json_conversion import JsonConversion
from resolute_gateway.rpc.open_streams import OpenStreams
from resolute_gateway.rpc.procedure import Procedure
from resolute_gateway.rpc.sign_in import SignInCheck


class RpcApplication(ConnectASGIApplication[None]):
    """Serves every RPC by the Connect protocol and gRPC-web.

    Args:
        backends: The services.
        conversion: Converts messages of JSON callers.
        streams: The open streams, to which new ones are added.
        max_bytes: Most bytes of one request.
    """

    def __init__(
        self, backends: Backends, *, conversion: JsonConversion, streams: OpenStreams, max_bytes: int
    ) -> None:
        sign_in = SignInCheck(backends)
        endpoints: dict[str, Any] = {}
        for method in methods():
            path = path_of(method)
            channel = backends.any_channel(path)
            if channel is not None:
                procedure = Procedure(
                    method,
                    channel,
                    conversion=conversion,
                    sign_in=sign_in,
                    streams=streams,
                    peers=backends.peers,
                )
                endpoints[path] = _endpoint(method, procedure)
        super().__init__(
            service=None,
            endpoints=lambda _: endpoints,
            codecs=[PassingCodec("proto"), PassingCodec("json")],
            # A few bytes of gzip would expand to the longest body of any call before its token is checked,
            # and compressing a large answer would hold the event loop. Proxies compress on networks.
            compressions=(),
            read_max_bytes=max_bytes,
        )

        self.paths: Collection[str] = endpoints.keys()
        """The names of all calls."""

    @property
    def path(self) -> str:
        """Where the calls are."""
        return "/"


def _endpoint(method: MethodDescriptor, procedure: Procedure) -> Any:
    if method.client_streaming:
        return Endpoint.client_stream(_info(method, StreamType.CLIENT_STREAM), procedure.client_stream)
    if method.server_streaming:
        return Endpoint.server_stream(_info(method, StreamType.SERVER_STREAM), procedure.server_stream)
    return Endpoint.unary(_info(method, StreamType.UNARY), procedure.unary)


def _info(method: MethodDescriptor, kind: StreamType) -> MethodInfo[Any, Any]:
    return MethodInfo(
        name=method.name,
        service_name=method.containing_service.full_name,
        input=Encoded,
        output=Encoded,
        # Calls by GET are refused, also of reads: any page can make a browser send a GET.
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=kind,
    )

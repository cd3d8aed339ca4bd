"""Health checks of a service on this machine, with the port and the certificates of its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from resolute.contracts.calls.tls import ClientTls
from resolute.errors import UnavailableError
from resolute_serving.server.settings import Settings
from resolute_serving.tls import CERTIFICATE_VARIABLE

_TIMEOUT_SECONDS = 5.0


def check(variables: Mapping[str, str], *, service: str) -> None:
    """Returns if the service says that it serves.

    Args:
        variables: Its settings.
        service: Its name.

    Raises:
        UnavailableError: It does not, or does not answer.
    """
    settings = Settings.from_environment(variables, service=service)
    try:
        with _channel(variables, settings, service=service) as channel:
            asked = health_pb2.HealthCheckRequest()
            answer = health_pb2_grpc.HealthStub(channel).Check(asked, timeout=_TIMEOUT_SECONDS)
    except grpc.RpcError as error:
        raise UnavailableError(
            f"{service} does not answer on port {settings.port}: {error.details()}"
        ) from error
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        raise UnavailableError(f"{service} cannot work at present; its log says why")


def _channel(variables: Mapping[str, str], settings: Settings, *, service: str) -> grpc.Channel:
    address = f"127.0.0.1:{settings.port}"
    if settings.tls is None:
        return grpc.insecure_channel(address)
    own = settings.client_tls or ClientTls.read(Path(variables[CERTIFICATE_VARIABLE]))
    # The certificate is for the name at which others call.
    name = settings.addresses.get(service, "localhost:").rpartition(":")[0]
    options = (("grpc.ssl_target_name_override", name),)
    return grpc.secure_channel(address, own.credentials(), options=options)

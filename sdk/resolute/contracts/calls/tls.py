"""TLS of clients: the trusted certificate authorities and the client's certificate."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolute.contracts.calls.retries import NO_GRPC_RETRIES
from resolute.errors import FailedPreconditionError

if TYPE_CHECKING:
    import ssl

    import grpc

_BEGIN = b"-----BEGIN "


@dataclass(frozen=True, kw_only=True)
class ClientTls:
    """The TLS settings of a client's connections."""

    authority: bytes | None = None
    """PEM of the certificates that sign the server's; None for the public authorities."""
    server_name: str = ""
    """Name that the server's certificate must be for; empty for the one in the address."""
    certificate: bytes | None = None
    """PEM of the certificate that this side shows; None for none."""
    key: bytes | None = None
    """PEM of its private key."""

    @classmethod
    def read(
        cls,
        authority: Path | None,
        *,
        server_name: str = "",
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> ClientTls:
        """Reads the files.

        Raises:
            FailedPreconditionError: One cannot be read, or is not PEM.
        """
        return cls(
            authority=read_pem(authority) if authority else None,
            server_name=server_name,
            certificate=read_pem(certificate) if certificate else None,
            key=read_pem(key) if key else None,
        )

    @classmethod
    def from_json(cls, content: Mapping[str, str] | None) -> ClientTls | None:
        """Reads what ``to_json`` wrote; None for a plain port."""
        if content is None:
            return None
        return cls(authority=content["authority"].encode() or None, server_name=content["server_name"])

    def to_json(self) -> dict[str, str]:
        """Whom it trusts, as plain data; what this side shows of itself stays here."""
        return {"authority": (self.authority or b"").decode(), "server_name": self.server_name}

    def credentials(self) -> grpc.ChannelCredentials:
        """The same for gRPC."""
        import grpc

        return grpc.ssl_channel_credentials(
            root_certificates=self.authority, private_key=self.key, certificate_chain=self.certificate
        )

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Options that a gRPC channel needs beside the credentials."""
        return (("grpc.ssl_target_name_override", self.server_name),) if self.server_name else ()

    def context(self) -> ssl.SSLContext:
        """The same for HTTP."""
        import ssl

        context = ssl.create_default_context(
            cadata=None if self.authority is None else self.authority.decode()
        )
        # As gRPC does: a certificate that is trusted itself needs no issuer.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


def aio_channel(
    address: str,
    *,
    tls: ClientTls | None,
    options: Sequence[tuple[str, str | int]],
    interceptors: Sequence[Any] | None = None,
) -> grpc.aio.Channel:
    """Opens an asyncio channel.

    Args:
        address: ``host:port``.
        tls: How it is made safe; None for a plain port.
        options: Options of gRPC.
        interceptors: See every call.
    """
    import grpc

    all_options = [*options, *NO_GRPC_RETRIES]
    if tls is None:
        return grpc.aio.insecure_channel(address, options=all_options, interceptors=interceptors)
    return grpc.aio.secure_channel(
        address, tls.credentials(), options=[*all_options, *tls.options], interceptors=interceptors
    )


def blocking_channel(
    address: str, *, tls: ClientTls | None, options: Sequence[tuple[str, str | int]]
) -> grpc.Channel:
    """Opens a channel whose calls block their thread.

    Args:
        address: ``host:port``.
        tls: How it is made safe; None for a plain port.
        options: Options of gRPC.
    """
    import grpc

    all_options = [*options, *NO_GRPC_RETRIES]
    if tls is None:
        return grpc.insecure_channel(address, options=all_options)
    return grpc.secure_channel(address, tls.credentials(), options=[*all_options, *tls.options])


def fingerprint_of(certificate: bytes) -> str:
    """SHA-256 of a certificate, in the form in which programs print it.

    Args:
        certificate: PEM of one certificate.
    """
    import ssl

    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.decode())).hexdigest().upper()
    return ":".join(digest[start : start + 2] for start in range(0, len(digest), 2))


def read_pem(path: Path) -> bytes:
    """Reads a certificate or a key.

    Raises:
        FailedPreconditionError: It cannot be read, or is not PEM.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FailedPreconditionError(f"cannot read {path}: {error.strerror}") from error
    if _BEGIN not in content:
        raise FailedPreconditionError(f"{path} is not a PEM file; it must begin with -----BEGIN")
    return content


def is_loopback(host: str) -> bool:
    """Whether only this host reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

"""TLS of servers: certificates that may be replaced while they serve, and the ports that use them."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import structlog

from resolute.contracts.calls.tls import ClientTls, is_loopback, read_pem
from resolute.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError

CERTIFICATE_VARIABLE = "RESOLUTE_TLS_CERT"
KEY_VARIABLE = "RESOLUTE_TLS_KEY"
AUTHORITY_VARIABLE = "RESOLUTE_TLS_CA"
CLIENTS_VARIABLE = "RESOLUTE_TLS_CLIENT_CA"
INSECURE_VARIABLE = "RESOLUTE_INSECURE"
_OPEN_KEY = 0o037
"""Bits of the mode that let others than the owner use a key; its group may read it."""
_log = structlog.get_logger("tls")


@dataclass(frozen=True, kw_only=True)
class TlsFiles:
    """The certificate files of a server."""

    certificate: Path
    """Its certificate, and those between it and the authority."""
    key: Path
    """Its private key."""
    clients: Path | None = None
    """Certificates of who signs those of clients; None to ask clients for none."""

    def read(self) -> LoadedTls:
        """Reads the files and checks that they belong together.

        Raises:
            FailedPreconditionError: A file cannot be read, other users can read the key, or the key does not
                match.
        """
        certificate, key = read_pem(self.certificate), read_pem(self.key)
        clients = read_pem(self.clients) if self.clients else None
        if self.key.stat().st_mode & _OPEN_KEY:
            raise FailedPreconditionError(f"others may use the key {self.key}; run `chmod 600 {self.key}`")
        return LoadedTls(certificate, key, clients, self._context())

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            raise FailedPreconditionError(
                f"{self.certificate} and {self.key} are not a certificate and its key: {error.reason}"
            ) from error
        return context

    def stamp(self) -> list[tuple[int, int, int] | None]:
        """Changes when a file does."""
        return [_stamp(path) for path in (self.certificate, self.key, self.clients) if path]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ctime_ns, status.st_ino, status.st_size


@dataclass(frozen=True)
class LoadedTls:
    """The loaded files."""

    certificate: bytes
    key: bytes
    clients: bytes | None
    context: ssl.SSLContext
    """The same for HTTP."""


class ServerTls:
    """The certificate of a server. Each new connection uses the current content of the files.

    Args:
        files: The certificate files.

    Raises:
        FailedPreconditionError: A file cannot be read, other users can read the key, or the key does not
            match.
    """

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        """Where it lies."""
        self._lock = threading.Lock()  # gRPC asks in threads of its own
        self._stamp = files.stamp()
        self._loaded = files.read()

    def credentials(self) -> grpc.ServerCredentials:
        """The certificate for a server of gRPC."""
        first = self._loaded
        shown = first

        def newer() -> grpc.ServerCertificateConfiguration | None:
            nonlocal shown
            current = self.current()
            if current is shown:
                return None
            shown = current
            return _for_grpc(current)

        make: Any = grpc.dynamic_ssl_server_credentials
        credentials: grpc.ServerCredentials = make(_for_grpc(first), newer, first.clients is not None)
        return credentials

    def context(self) -> ssl.SSLContext:
        """The certificate of the moment for a server of HTTP, which asks clients for none."""
        context = self._loaded.context

        def newer(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = self.current().context

        context.sni_callback = newer  # called for each connection, whether or not it names a server
        return context

    def current(self) -> LoadedTls:
        """The files as they are now; as they were while they cannot be used."""
        with self._lock:
            stamp = self.files.stamp()
            if stamp != self._stamp:
                # Files are replaced one after the other: each change is tried once, not for every connection.
                self._stamp = stamp
                try:
                    self._loaded = self.files.read()
                    _log.info("certificate read again", file=str(self.files.certificate))
                except (FailedPreconditionError, OSError) as error:
                    _log.warning("the new certificate cannot be used", error=str(error))
            return self._loaded


def _for_grpc(loaded: LoadedTls) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(loaded.key, loaded.certificate)], loaded.clients)


@dataclass(frozen=True, kw_only=True)
class Listener:
    """A port on which a gRPC server listens."""

    host: str = "127.0.0.1"
    """Address to bind."""
    port: int = 0
    """Port to bind; zero picks a free one."""
    tls: ServerTls | None = None
    """Its certificate; None for a plain port."""
    insecure: bool = False
    """Whether other machines may reach a plain port."""

    def add_to(self, server: grpc.aio.Server) -> int:
        """Binds the port; returns its number.

        Raises:
            FailedPreconditionError: Other machines would reach a plain port.
            UnavailableError: The port is taken.
        """
        require_tls(self.host, tls=self.tls, insecure=self.insecure)
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        try:
            if self.tls is None:
                return server.add_insecure_port(address)
            return server.add_secure_port(address, self.tls.credentials())
        except RuntimeError as error:
            raise UnavailableError(
                f"cannot listen on {address}; another program has it, choose another port"
            ) from error


def require_tls(host: str, *, tls: ServerTls | None, insecure: bool) -> None:
    """Refuses to serve other machines in plain text, where tokens could be read on the way.

    Raises:
        FailedPreconditionError: The address is not of this host alone, and nothing protects it.
    """
    if tls is None and not insecure and not is_loopback(host):
        raise FailedPreconditionError(
            f"other machines reach {host}, and there is no TLS: set {CERTIFICATE_VARIABLE} and "
            f"{KEY_VARIABLE}, bind 127.0.0.1, or set {INSECURE_VARIABLE}=1 if the network is safe"
        )


def server_tls(variables: Mapping[str, str]) -> ServerTls | None:
    """Reads a server's certificate from the settings; None for plain ports.

    Raises:
        InvalidArgumentError: Only one of certificate and key is set.
        FailedPreconditionError: A file cannot be used.
    """
    certificate, key = variables.get(CERTIFICATE_VARIABLE, ""), variables.get(KEY_VARIABLE, "")
    if bool(certificate) != bool(key):
        raise InvalidArgumentError(f"set both {CERTIFICATE_VARIABLE} and {KEY_VARIABLE}, or neither")
    clients = variables.get(CLIENTS_VARIABLE, "")
    if not certificate:
        if clients:
            raise InvalidArgumentError(f"{CLIENTS_VARIABLE} needs {CERTIFICATE_VARIABLE}")
        return None
    return ServerTls(
        TlsFiles(certificate=Path(certificate), key=Path(key), clients=Path(clients) if clients else None)
    )


def client_tls(variables: Mapping[str, str]) -> ClientTls | None:
    """Reads how a service calls the others; None for plain ports. It shows its own certificate.

    Raises:
        FailedPreconditionError: A file cannot be used.
    """
    authority = variables.get(AUTHORITY_VARIABLE, "")
    if not authority:
        return None
    certificate, key = variables.get(CERTIFICATE_VARIABLE, ""), variables.get(KEY_VARIABLE, "")
    return ClientTls.read(
        Path(authority),
        certificate=Path(certificate) if certificate else None,
        key=Path(key) if key else None,
    )

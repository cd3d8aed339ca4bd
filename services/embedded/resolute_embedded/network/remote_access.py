"""Access to the cluster from other machines: a second gRPC port, and HTTP, with TLS.

Processes of this machine use a plain loopback port, so that an expired certificate does not stop trials.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.calls.tls import ClientTls, fingerprint_of, is_loopback
from resolute.errors import InvalidArgumentError
from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.network.port import choose_remote_port
from resolute_serving.tls import Listener, ServerTls, TlsFiles

_ALWAYS = "localhost"
"""A name that every certificate has that the cluster makes."""


@dataclass(frozen=True, kw_only=True)
class RemoteOptions:
    """The options of `resolute up` for access from other machines."""

    host: str = ""
    """Address to bind; empty for this machine alone."""
    remote_port: int | None = None
    """Port of gRPC; None for the last one, or else a free one."""
    tls_cert: Path | None = None
    """The certificate."""
    tls_key: Path | None = None
    """Its key."""
    tls_self_signed: bool = False
    """Whether the cluster makes its certificate."""
    insecure: bool = False
    """Whether other machines may reach plain ports."""

    @property
    def wanted(self) -> bool:
        """Whether anything was asked for."""
        return bool(self.host or self.tls_cert or self.tls_key or self.tls_self_signed)


@dataclass(frozen=True, kw_only=True)
class RemoteAccess:
    """The ports for other machines."""

    listener: Listener
    """That of gRPC."""
    fingerprint: str
    """SHA-256 of a self-signed certificate; empty for none."""
    trusted: ClientTls | None
    """Whom trials on other machines trust here; None for a plain port."""

    @classmethod
    def prepare(
        cls, state: StateDirectory, options: RemoteOptions, *, held: ExitStack
    ) -> RemoteAccess | None:
        """Reads or makes the certificate and chooses the port; None if only this machine is served.

        Args:
            state: The home.
            options: What was asked for.
            held: Keeps the port from other programs until it is closed; to be closed once the server listens.

        Raises:
            InvalidArgumentError: Options do not go together, or other machines would reach plain ports.
            FailedPreconditionError: A file cannot be used.
        """
        if not options.wanted:
            return None
        host = options.host or "127.0.0.1"
        files = _files(state, options, host)
        if files is None and not options.insecure and not is_loopback(host):
            raise InvalidArgumentError(
                f"other machines reach {host}, and there is no TLS: add --tls-self-signed, or --tls-cert and "
                "--tls-key, or --insecure if the network is safe"
            )
        listener = Listener(
            host=host,
            port=choose_remote_port(state, held, host=host, asked=options.remote_port),
            tls=None if files is None else ServerTls(files),
            insecure=options.insecure,
        )
        if files is None or not options.tls_self_signed:
            return cls(listener=listener, fingerprint="", trusted=None if files is None else ClientTls())
        certificate = files.certificate.read_bytes()
        # Who trusts this very certificate needs no name of the machine in it, which may be another by now.
        trusted = ClientTls(authority=certificate, server_name=_ALWAYS)
        return cls(listener=listener, fingerprint=fingerprint_of(certificate), trusted=trusted)

    @property
    def certificates(self) -> tuple[Path, ...]:
        """Files of the certificates that it serves and trusts."""
        if self.listener.tls is None:
            return ()
        files = self.listener.tls.files
        return (files.certificate, *filter(None, [files.clients]))

    @property
    def names(self) -> frozenset[str]:
        """Names of this machine by which HTTP is asked for."""
        return frozenset({socket.gethostname().lower(), self.listener.host.lower()})

    @property
    def announcement(self) -> list[str]:
        """What `resolute up` says of it."""
        listener = self.listener
        how = "without TLS" if listener.tls is None else "by TLS"
        lines = [f"Other machines: {_shown(listener.host)}:{listener.port}, gRPC {how}"]
        return [*lines, f"Fingerprint: {self.fingerprint}"] if self.fingerprint else lines


def _files(state: StateDirectory, options: RemoteOptions, host: str) -> TlsFiles | None:
    given = options.tls_cert, options.tls_key
    if options.tls_self_signed:
        if any(given):
            raise InvalidArgumentError("give either --tls-self-signed, or --tls-cert and --tls-key")
        from resolute_embedded.network.self_signed import self_signed

        names = dict.fromkeys([_shown(host), socket.gethostname(), _ALWAYS, "127.0.0.1", "::1"])
        return self_signed(state.tls, names=list(names), now=dt.datetime.now(dt.timezone.utc))
    if not any(given):
        return None
    if options.tls_cert is None or options.tls_key is None:
        raise InvalidArgumentError("give both --tls-cert and --tls-key")
    return TlsFiles(certificate=options.tls_cert.absolute(), key=options.tls_key.absolute())


def _shown(host: str) -> str:
    """The name that others may use; a wildcard address is none."""
    try:
        wildcard = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host
    return socket.gethostname() if wildcard else host

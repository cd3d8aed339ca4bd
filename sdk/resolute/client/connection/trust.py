"""Certificates of clusters that people confirmed by their fingerprints."""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

from resolute.client.connection.home import Home
from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import FailedPreconditionError, UnavailableError

_SECONDS = 10.0


def read(home: Home, address: str) -> ClientTls | None:
    """Returns the certificate to trust at an address; None if none was confirmed.

    Raises:
        FailedPreconditionError: What was kept cannot be read.
    """
    path = home.trust_file(address)
    try:
        return ClientTls.from_json(json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        raise FailedPreconditionError(
            f"{path} cannot be read ({error}); remove it and log in again"
        ) from error


def save(home: Home, address: str, tls: ClientTls) -> None:
    """Trusts a certificate at an address from now on."""
    path = home.trust_file(address)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, json.dumps(tls.to_json()))


def is_trusted(address: str, tls: ClientTls) -> bool:
    """Whether the certificate that a server shows is trusted.

    Raises:
        UnavailableError: Nothing answers there, or it does not speak TLS.
    """
    context = tls.context()
    try:
        _shown(address, context, name=tls.server_name)
    except ssl.SSLCertVerificationError:
        return False
    return True


def presented(address: str) -> ClientTls:
    """Trusts the certificate that an unknown server shows: to be confirmed by its fingerprint.

    Args:
        address: ``host:port``.

    Raises:
        UnavailableError: Nothing answers there, or it does not speak TLS.
        FailedPreconditionError: The certificate cannot be used, because it has expired for example.
    """
    anyone = ssl.create_default_context()
    anyone.check_hostname = False
    anyone.verify_mode = ssl.CERT_NONE
    binary, _ = _shown(address, anyone)
    pem = ssl.DER_cert_to_PEM_cert(binary)
    context = ClientTls(authority=pem.encode()).context()
    context.check_hostname = False
    try:
        _, names = _shown(address, context)
    except ssl.SSLCertVerificationError as error:
        raise FailedPreconditionError(
            f"the certificate of {address} cannot be used: {error.verify_message}"
        ) from error
    return ClientTls(authority=pem.encode(), server_name=names[0] if names else "")


def _shown(address: str, context: ssl.SSLContext, *, name: str = "") -> tuple[bytes, list[str]]:
    """The certificate that a server shows, and the names that it is for, if it was verified."""
    parts = urlsplit(f"//{address}")
    host, port = parts.hostname or "", parts.port or 443
    try:
        with (
            socket.create_connection((host, port), timeout=_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=name or host) as connection,
        ):
            binary, content = connection.getpeercert(binary_form=True), connection.getpeercert()
    except ssl.SSLCertVerificationError:
        raise
    except OSError as error:
        raise UnavailableError(f"no TLS is spoken at {address} ({error}); check the address") from error
    alternatives: Any = (content or {}).get("subjectAltName", ())
    return binary or b"", [str(value) for kind, value in alternatives if kind in {"DNS", "IP Address"}]

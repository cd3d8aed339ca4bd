"""The certificate of `resolute up --tls-self-signed`: created once, trusted by its fingerprint."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from resolute.contracts.files.atomic_files import write_atomically
from resolute_serving.tls import TlsFiles

_YEARS = 10
"""How long it lasts: clients trust this one certificate, so an early end would protect no one."""


def self_signed(directory: Path, *, names: Sequence[str], now: dt.datetime) -> TlsFiles:
    """Returns the certificate of a directory; makes one if there is none, or if it has expired.

    Args:
        directory: Where it lies with its key.
        names: Names and addresses that it is for, the first one before all.
        now: The time.
    """
    files = TlsFiles(certificate=directory / "certificate.pem", key=directory / "key.pem")
    if not _is_valid(files.certificate, now):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = ec.generate_private_key(ec.SECP256R1())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        certificate = _certificate(key, names, now)
        # The certificate last: where it is, its key is too.
        write_atomically(files.key, private, mode=0o600, sync=True)
        write_atomically(files.certificate, certificate.public_bytes(serialization.Encoding.PEM), sync=True)
    return files


def _is_valid(certificate: Path, now: dt.datetime) -> bool:
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    except FileNotFoundError:
        return False
    return now.astimezone(dt.timezone.utc) < loaded.not_valid_after_utc


def _certificate(key: ec.EllipticCurvePrivateKey, names: Sequence[str], now: dt.datetime) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))  # clocks of clients may be behind
        .not_valid_after(now + dt.timedelta(days=365 * _YEARS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([general_name(name) for name in names]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(key, hashes.SHA256())
    )


def general_name(name: str) -> x509.GeneralName:
    """Returns an address or a host name in the form in which certificates have it."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)

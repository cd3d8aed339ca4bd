"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from resolute.contracts.calls.tls import ClientTls
from resolute_serving.tls import TlsFiles

_DAY = dt.timedelta(days=1)


_SIGNS_CERTIFICATES = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Authority:
    """Signs certificates. Its own is in ``file``."""

    file: Path
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, directory: Path, *, name: str = "authority") -> Authority:
        """Makes one, with its certificate in a directory."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        usage = x509.BasicConstraints(ca=True, path_length=None)
        certificate = (
            _builder(subject, subject, key, expired=False)
            .add_extension(usage, critical=True)
            .add_extension(_SIGNS_CERTIFICATES, critical=True)
            .add_extension(_issuer(key), critical=False)
            .sign(key, hashes.SHA256())
        )
        file = directory / f"{name}.pem"
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(file, certificate, key)

    def issue(self, directory: Path, *, name: str = "localhost", expired: bool = False) -> TlsFiles:
        """Writes a certificate and its key, in place of earlier ones of that name.

        Args:
            directory: Where they lie.
            name: Whom it is for, besides 127.0.0.1.
            expired: Whether it ended yesterday.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(name)]
        if name == "localhost":
            names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))  # type: ignore[arg-type]
        certificate = (
            _builder(_name(name), self.certificate.subject, key, expired=expired)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(_issuer(self.key), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        files = TlsFiles(certificate=directory / f"{name}-cert.pem", key=directory / f"{name}-key.pem")
        files.key.touch(mode=0o600)
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return files

    def trusted(self, *, server_name: str = "", own: TlsFiles | None = None) -> ClientTls:
        """What clients need that trust it, with a certificate of their own if one is given."""
        return ClientTls.read(
            self.file,
            server_name=server_name,
            certificate=own.certificate if own else None,
            key=own.key if own else None,
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, expired: bool
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 30 * _DAY)
        .not_valid_after(now - _DAY if expired else now + 30 * _DAY)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _issuer(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    """Names the key that signs: Python 3.13 trusts no certificate without."""
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())

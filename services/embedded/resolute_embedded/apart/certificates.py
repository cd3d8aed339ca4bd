"""A cluster's own certificate authority, and the certificate that it signs for the services."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from resolute.contracts.files.atomic_files import write_atomically
from resolute_embedded.network.self_signed import general_name

AUTHORITY_CERTIFICATE = "authority.pem"
_YEARS = 10
_PUBLIC = 0o644
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


def issue_all(directory: Path, *, authority: Path, names: Sequence[str], now: float) -> None:
    """Writes ``authority.pem``, and ``server.pem`` with its key, where they are missing.

    A certificate that is for other names is replaced: names may be added later.

    Args:
        directory: Where they lie.
        authority: Where the authority's key lies.
        names: Names and addresses that the certificate is for.
        now: The time, as seconds since 1970.
    """
    moment = dt.datetime.fromtimestamp(now, tz=dt.timezone.utc)
    signer, key = _authority(directory / AUTHORITY_CERTIFICATE, authority / "authority-key.pem", moment)
    server = directory / "server.pem"
    if server.exists() and _names(x509.load_pem_x509_certificate(server.read_bytes())) == set(names):
        return
    own = ec.generate_private_key(ec.SECP256R1())
    alternatives = x509.SubjectAlternativeName([general_name(name) for name in names])
    signed = (
        _builder(names[0], signer.subject, own, moment)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(alternatives, critical=False)
        .add_extension(_issuer(key), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_key(directory / "server-key.pem", own)
    write_atomically(server, signed.public_bytes(serialization.Encoding.PEM), mode=_PUBLIC, sync=True)


def _authority(
    path: Path, key_path: Path, now: dt.datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    if path.exists():
        loaded = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        return x509.load_pem_x509_certificate(path.read_bytes()), loaded
    key = ec.generate_private_key(ec.SECP256R1())
    name = "Resolute cluster"
    made = (
        _builder(name, _subject(name), key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_SIGNS_CERTIFICATES, critical=True)
        .add_extension(_issuer(key), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_key(key_path, key)
    write_atomically(path, made.public_bytes(serialization.Encoding.PEM), mode=_PUBLIC, sync=True)
    return made, key


def _builder(
    name: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_subject(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))  # clocks of clients may be behind
        .not_valid_after(now + dt.timedelta(days=365 * _YEARS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _issuer(key: ec.EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    """Names the key that signs: Python 3.13 trusts no certificate without."""
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_atomically(path, text, mode=0o600, sync=True)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _names(certificate: x509.Certificate) -> set[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in names}

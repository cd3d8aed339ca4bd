"""The certificates of services apart are trusted as strictly as Python 3.13 does by itself."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from support.certificates import Authority

from resolute_embedded.apart.certificates import AUTHORITY_CERTIFICATE, issue_all


def _handshake(authority: Path, certificate: Path, key: Path, *, name: str) -> None:
    trusting = ssl.create_default_context(cafile=str(authority))
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(back, there, server_hostname=name)
    server = serving.wrap_bio(there, back, server_side=True)
    ended: set[ssl.SSLObject] = set()
    while len(ended) < 2:
        for side in (client, server):
            try:
                side.do_handshake()
                ended.add(side)
            except ssl.SSLWantReadError:
                pass


@pytest.mark.parametrize("name", ["services.example", "10.0.0.5"])
def test_a_strict_client_trusts_the_services(tmp_path: Path, name: str) -> None:
    (tmp_path / "tls").mkdir()
    issue_all(tmp_path / "tls", authority=tmp_path / "authority", names=[name], now=1_790_000_000.0)
    tls = tmp_path / "tls"
    _handshake(tls / AUTHORITY_CERTIFICATE, tls / "server.pem", tls / "server-key.pem", name=name)


def test_a_strict_client_trusts_what_tests_make(tmp_path: Path) -> None:
    made = Authority.create(tmp_path)
    files = made.issue(tmp_path)
    _handshake(made.file, files.certificate, files.key, name="localhost")

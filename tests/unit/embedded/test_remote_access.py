"""What `resolute up` makes of options about other machines."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cryptography import x509
from support.certificates import Authority

from resolute.client.connection.home import Home
from resolute.contracts.calls.tls import ClientTls, fingerprint_of
from resolute.errors import InvalidArgumentError
from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.network.remote_access import RemoteAccess, RemoteOptions
from resolute_embedded.network.self_signed import self_signed

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
EVERYBODY = "0.0.0.0"


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(Home(tmp_path / "home"))


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_nothing_is_prepared_where_nothing_is_asked_for(state: StateDirectory, held: ExitStack) -> None:
    assert RemoteAccess.prepare(state, RemoteOptions(), held=held) is None


def test_options_that_do_not_go_together_are_refused(
    state: StateDirectory, held: ExitStack, tmp_path: Path
) -> None:
    files = Authority.create(tmp_path).issue(tmp_path)
    with pytest.raises(InvalidArgumentError, match="add --tls-self-signed"):
        RemoteAccess.prepare(state, RemoteOptions(host=EVERYBODY), held=held)
    with pytest.raises(InvalidArgumentError, match="give both"):
        RemoteAccess.prepare(state, RemoteOptions(tls_cert=files.certificate), held=held)
    with pytest.raises(InvalidArgumentError, match="give either"):
        RemoteAccess.prepare(
            state, RemoteOptions(tls_cert=files.certificate, tls_self_signed=True), held=held
        )


def test_a_given_certificate_is_used_and_has_no_fingerprint_to_confirm(
    state: StateDirectory, held: ExitStack, tmp_path: Path
) -> None:
    files = Authority.create(tmp_path).issue(tmp_path)
    options = RemoteOptions(host=EVERYBODY, tls_cert=files.certificate, tls_key=files.key)
    made = RemoteAccess.prepare(state, options, held=held)
    assert made is not None
    assert made.listener.tls is not None
    assert (made.fingerprint, len(made.announcement)) == ("", 1)
    assert EVERYBODY not in made.announcement[0]
    assert made.trusted == ClientTls(), "its authority is a public one, or the settings of an engine name it"


def test_trials_trust_the_certificate_that_was_made_whatever_the_address(
    state: StateDirectory, held: ExitStack
) -> None:
    made = RemoteAccess.prepare(state, RemoteOptions(host=EVERYBODY, tls_self_signed=True), held=held)
    assert made is not None
    assert made.trusted is not None
    certificate = (state.tls / "certificate.pem").read_bytes()
    assert made.trusted.authority == certificate
    names = x509.load_pem_x509_certificate(certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert made.trusted.server_name in names.value.get_values_for_type(x509.DNSName)


def test_plain_ports_are_served_where_somebody_insists(state: StateDirectory, held: ExitStack) -> None:
    made = RemoteAccess.prepare(state, RemoteOptions(host=EVERYBODY, insecure=True), held=held)
    assert made is not None
    assert (made.listener.tls, made.trusted) == (None, None)
    assert "without TLS" in made.announcement[0]


def test_a_certificate_is_made_once_and_again_when_it_has_expired(tmp_path: Path) -> None:
    def made(now: dt.datetime) -> str:
        files = self_signed(tmp_path / "tls", names=["a.example", "127.0.0.1"], now=now)
        return fingerprint_of(files.certificate.read_bytes())

    first = made(NOW)
    assert made(NOW + dt.timedelta(days=3000)) == first
    assert made(NOW + dt.timedelta(days=4000)) != first
    assert (tmp_path / "tls" / "key.pem").stat().st_mode & 0o077 == 0

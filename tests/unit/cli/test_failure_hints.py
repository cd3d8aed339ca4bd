"""What a failed command advises: by what was sent to the cluster, and by how the connection failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from resolute.cli.failures import explain
from resolute.cli.options.settings import Settings
from resolute.client.connection.endpoint import Endpoint
from resolute.contracts.calls.tls import ClientTls
from resolute.errors import UnauthenticatedError, UnavailableError
from resolute.rpc.connection_causes import CLOSED, NOT_GRPC, UNTRUSTED, connection_cause


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    endpoint = Endpoint(
        address="host:1",
        token=lambda: "t",
        token_origin="in a file",
        credential_file=Path("token"),
        remedy="start it",
    )
    monkeypatch.setattr(Settings, "endpoint", lambda _: endpoint)
    return Settings()


def test_a_refused_sign_in_is_not_about_a_token(settings: Settings) -> None:
    refused = UnauthenticatedError("the password is wrong")
    assert "host:1 refused the token (in a file)" in str(explain(refused, settings))
    settings.signs_in = True
    assert explain(refused, settings) == "error: the password is wrong"


MISMATCH = f"cannot reach host:1 ({connection_cause('Ssl handshake failed: WRONG_VERSION_NUMBER')})"


@pytest.mark.parametrize(
    ("tls", "advice"),
    [
        (ClientTls(), "the command asked by TLS: `-m http://host:1` asks without it"),
        (None, "the command asked without TLS: `-m https://host:1` asks with it"),
    ],
)
def test_tls_on_one_side_has_advice_that_names_the_side(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tls: ClientTls | None, advice: str
) -> None:
    failed = UnavailableError("cannot reach host:1 (nothing listens there)")
    assert explain(failed, settings) == f"error: {failed}\n  start it"
    endpoint = settings.endpoint()
    assert endpoint is not None
    monkeypatch.setattr(Settings, "endpoint", lambda _: replace(endpoint, tls=tls))
    assert explain(UnavailableError(MISMATCH), settings) == f"error: {MISMATCH}\n  {advice}"


@pytest.mark.parametrize(("tls", "url"), [(ClientTls(), "https://host:1"), (None, "http://host:1")])
def test_the_port_of_the_page_has_advice_with_its_url(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tls: ClientTls | None, url: str
) -> None:
    endpoint = settings.endpoint()
    assert endpoint is not None
    monkeypatch.setattr(Settings, "endpoint", lambda _: replace(endpoint, tls=tls))
    failed = UnavailableError(f"cannot reach host:1 ({NOT_GRPC})")
    assert (
        explain(failed, settings) == f"error: {failed}\n  if it is the address of the page, write `-m {url}`"
    )


def test_a_port_that_closes_the_connection_may_expect_tls(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = UnavailableError(f"cannot reach host:1 ({CLOSED})")
    advice = "  start it; if it expects TLS, `-m https://host:1` asks with it"
    assert explain(failed, settings) == f"error: {failed}\n{advice}"
    endpoint = settings.endpoint()
    assert endpoint is not None
    monkeypatch.setattr(Settings, "endpoint", lambda _: replace(endpoint, tls=ClientTls()))
    assert explain(failed, settings) == f"error: {failed}\n  start it"


def test_a_certificate_that_is_not_trusted_has_two_ways_to_trust_it(settings: Settings) -> None:
    said = str(explain(UnavailableError(f"cannot reach host:1 ({UNTRUSTED})"), settings))
    assert "  `resolute -m https://host:1 user login NAME` shows its fingerprint" in said
    assert said.endswith("or name its authority in RESOLUTE_MASTER_CERT")

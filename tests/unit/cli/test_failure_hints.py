"""What a failed command advises: by what was sent to the cluster, and by how the connection failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute.cli.failures import explain
from resolute.cli.options.settings import Settings
from resolute.client.connection.endpoint import Endpoint
from resolute.errors import UnauthenticatedError, UnavailableError
from resolute.rpc.connection_causes import connection_cause


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


@pytest.mark.parametrize(
    ("details", "advice"),
    [
        ("Ssl handshake failed: WRONG_VERSION_NUMBER", "`-m https://HOST:PORT` speaks TLS"),
        ("Connection refused", "start it"),
    ],
)
def test_tls_on_one_side_has_advice_of_its_own(settings: Settings, details: str, advice: str) -> None:
    failed = UnavailableError(f"cannot reach host:1 ({connection_cause(details)})")
    assert advice in str(explain(failed, settings))

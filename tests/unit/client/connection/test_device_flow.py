"""Signing in from a terminal where the provider, or the person, does not do as it should."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from support.clocks import ManualClock
from support.daemons.odd_provider import odd_provider

from resolute.client.connection import device_flow
from resolute.contracts.calls import openid
from resolute.errors import UnauthenticatedError, UnavailableError

STARTED = {"device_code": "d", "user_code": "u", "verification_uri": "https://id.example/device"}


def sign_in(
    started: Mapping[str, Any], answers: list[Mapping[str, Any] | bytes], *, last: Mapping[str, Any] | bytes
) -> tuple[str, list[float]]:
    """Signs in at a provider that gives some answers, and then the last one; returns the pauses too."""
    clock, pauses, issuers = ManualClock(), list[float](), list[str]()

    def answer(path: str) -> Mapping[str, Any] | bytes:
        if path == "/device":
            return {**STARTED, **started}
        if path == "/token":
            return answers.pop(0) if answers else last
        named = {"device_authorization_endpoint": "device", "token_endpoint": "token"}
        return {"issuer": issuers[0], **{name: f"{issuers[0]}/{at}" for name, at in named.items()}}

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock.advance(seconds)

    with odd_provider(answer) as issuer:
        issuers.append(issuer)
        known = device_flow.Provider(issuer, "resolute", ("openid",))
        return device_flow.sign_in(known, lambda _: None, sleep=sleep, clock=clock), pauses


def test_an_answer_that_fails_is_asked_for_again() -> None:
    pending = {"error": "authorization_pending"}
    token, pauses = sign_in({"interval": 0}, [b"busy", pending, b"busy"], last={"id_token": "it"})
    assert (token, pauses) == ("it", [5.0] * 4)


def test_pauses_are_neither_too_short_nor_too_long() -> None:
    slow, token = {"error": "slow_down"}, {"id_token": "it"}
    assert sign_in({"interval": 1e-6}, [slow], last=token)[1] == [1.0, 6.0]
    assert sign_in({"interval": 1e9}, [slow], last=token)[1] == [60.0, 60.0]
    assert sign_in({"interval": "soon", "expires_in": "later"}, [], last=token)[1] == [5.0]


def test_a_code_that_nobody_confirms_ends_the_sign_in() -> None:
    with pytest.raises(UnauthenticatedError, match="the code was not confirmed within 30 seconds"):
        sign_in({"expires_in": 30}, [], last={"error": "authorization_pending"})
    with pytest.raises(UnavailableError, match="does not answer as an OpenID provider"):
        sign_in({"expires_in": 30}, [], last=b"busy")


def test_an_answer_without_end_or_nested_without_end_is_given_up() -> None:
    with odd_provider(lambda _: None) as issuer, pytest.raises(UnavailableError, match="takes more than"):
        openid.ask(issuer, seconds=0.2)
    with (
        odd_provider(lambda _: b"[" * 200_000) as issuer,
        pytest.raises(UnavailableError, match="does not answer"),
    ):
        openid.ask(issuer)


def test_endpoints_are_named_safe_and_not_on_this_machine() -> None:
    described = {"issuer": "https://id.example", "token_endpoint": "https://id.example/token"}
    assert openid.endpoint(described, "token_endpoint") == "https://id.example/token"
    with pytest.raises(UnavailableError, match="has no jwks_uri"):
        openid.endpoint(described, "jwks_uri")
    for url, problem in (
        ("http://id.example/token", "has no TLS"),
        ("https://[x", "has no TLS"),
        ("http://127.0.0.1:8080/token", "is not where"),
        ("https://localhost/token", "is not where"),
    ):
        with pytest.raises(UnavailableError, match=problem):
            openid.endpoint({**described, "token_endpoint": url}, "token_endpoint")
    here = {"issuer": "http://127.0.0.1:1", "token_endpoint": "http://127.0.0.1:1/token"}
    assert openid.endpoint(here, "token_endpoint") == "http://127.0.0.1:1/token"

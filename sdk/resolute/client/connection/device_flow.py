"""Signing in at an OpenID provider from a terminal: the device flow of RFC 8628.

The provider shows a code here, which the person confirms in any browser. No password and no secret passes
through this program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3

from resolute.errors import FailedPreconditionError, UnauthenticatedError, UnavailableError

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_TIMEOUT_SECONDS = 30.0
_DEFAULT_INTERVAL = 5.0
_SLOW_DOWN_SECONDS = 5.0
wait = time.sleep
"""Waits some seconds."""
_LOOPBACK = ("http://127.0.0.1:", "http://[::1]:")


@dataclass(frozen=True)
class Provider:
    """An OpenID provider, as the cluster names it."""

    issuer: str
    client_id: str
    scopes: Sequence[str]


@dataclass(frozen=True)
class Confirmation:
    """What the person has to do."""

    url: str
    """The page to open."""
    code: str
    """The code that the page shows or asks for."""
    complete_url: str
    """The page with the code filled in; empty if the provider offers none."""


def sign_in(
    provider: Provider, show: Callable[[Confirmation], None], *, sleep: Callable[[float], None] | None = None
) -> str:
    """Returns an ID token, once the person has confirmed the code.

    Args:
        provider: The provider.
        show: Tells the person what to do.
        sleep: Waits before the provider is asked again; None to wait as long as it wants.

    Raises:
        FailedPreconditionError: The provider has no device flow.
        UnauthenticatedError: The person refused, or took too long.
        UnavailableError: The provider does not answer as it should.
    """
    with urllib3.PoolManager(timeout=_TIMEOUT_SECONDS) as pool:
        flow = _Flow(pool, provider)
        started = flow.start()
        show(
            Confirmation(
                url=str(started["verification_uri"]),
                code=str(started["user_code"]),
                complete_url=str(started.get("verification_uri_complete", "")),
            )
        )
        interval = float(started.get("interval") or _DEFAULT_INTERVAL)
        while True:
            (sleep or wait)(interval)
            answer = flow.ask(str(started["device_code"]))
            error = answer.get("error", "")
            if not error:
                return _id_token(answer, provider)
            if error == "slow_down":
                interval += _SLOW_DOWN_SECONDS
            elif error != "authorization_pending":
                raise UnauthenticatedError(f"{provider.issuer} did not sign you in: {_reason(answer)}")


class _Flow:
    """The requests of one sign-in."""

    def __init__(self, pool: urllib3.PoolManager, provider: Provider) -> None:
        self._pool = pool
        self._provider = provider
        found = self._json("GET", f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != provider.issuer:
            raise UnavailableError(f"{provider.issuer} describes itself as another provider; ask an admin")
        self._endpoints = found

    def start(self) -> Mapping[str, Any]:
        """Asks for a code."""
        url = self._endpoints.get("device_authorization_endpoint")
        if not url:
            raise FailedPreconditionError(
                f"{self._provider.issuer} offers no sign-in from a terminal (device flow); use a token"
            )
        fields = {"client_id": self._provider.client_id, "scope": " ".join(self._provider.scopes)}
        answer = self._json("POST", url, fields)
        if not {"device_code", "user_code", "verification_uri"} <= answer.keys():
            raise UnavailableError(f"{self._provider.issuer} refuses to sign in: {_reason(answer)}")
        return answer

    def ask(self, device_code: str) -> Mapping[str, Any]:
        """Asks whether the person has confirmed."""
        fields = {"client_id": self._provider.client_id, "device_code": device_code, "grant_type": _GRANT}
        return self._json("POST", str(self._endpoints.get("token_endpoint", "")), fields)

    def _json(self, method: str, url: str, fields: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        if not url.startswith(("https://", *_LOOPBACK)):
            raise UnavailableError(f"the OpenID provider names {url!r}, which has no TLS; ask an admin")
        try:
            body = None if fields is None else urlencode(fields)
            headers = {"content-type": "application/x-www-form-urlencoded"} if body else {}
            response = self._pool.request(
                method, url, body=body, headers=headers, redirect=False, retries=False
            )
            found = response.json()
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise UnavailableError(f"{url} does not answer as an OpenID provider: {error}") from error
        if not isinstance(found, dict):
            raise UnavailableError(f"{url} does not answer as an OpenID provider")
        return found


def _id_token(answer: Mapping[str, Any], provider: Provider) -> str:
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise UnavailableError(f"{provider.issuer} returned no ID token; the scopes must include openid")
    return token


def _reason(answer: Mapping[str, Any]) -> str:
    return str(answer.get("error_description") or answer.get("error") or "it gave no reason")

"""Signing in at an OpenID provider from a terminal: the device flow of RFC 8628.

The provider shows a code here, which the person confirms in any browser. No password and no secret passes
through this program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.contracts.calls import openid
from resolute.errors import FailedPreconditionError, UnauthenticatedError, UnavailableError

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_DEFAULT_INTERVAL = 5.0
_SLOW_DOWN_SECONDS = 5.0
wait = time.sleep
"""Waits some seconds."""


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
    described = openid.describe(provider.issuer)
    started = _start(provider, described)
    show(
        Confirmation(
            url=str(started["verification_uri"]),
            code=str(started["user_code"]),
            complete_url=str(started.get("verification_uri_complete", "")),
        )
    )
    fields = {
        "client_id": provider.client_id,
        "device_code": str(started["device_code"]),
        "grant_type": _GRANT,
    }
    interval = float(started.get("interval") or _DEFAULT_INTERVAL)
    while True:
        (sleep or wait)(interval)
        answer = openid.ask(openid.endpoint(described, "token_endpoint"), fields)
        error = answer.get("error", "")
        if not error:
            return _id_token(answer, provider)
        if error == "slow_down":
            interval += _SLOW_DOWN_SECONDS
        elif error != "authorization_pending":
            raise UnauthenticatedError(f"{provider.issuer} did not sign you in: {openid.reason(answer)}")


def _start(provider: Provider, described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Asks for a code."""
    url = openid.endpoint(described, "device_authorization_endpoint")
    if not url:
        raise FailedPreconditionError(
            f"{provider.issuer} offers no sign-in from a terminal (device flow); use a token"
        )
    answer = openid.ask(url, {"client_id": provider.client_id, "scope": " ".join(provider.scopes)})
    if not {"device_code", "user_code", "verification_uri"} <= answer.keys():
        raise UnavailableError(f"{provider.issuer} refuses to sign in: {openid.reason(answer)}")
    return answer


def _id_token(answer: Mapping[str, Any], provider: Provider) -> str:
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise UnavailableError(f"{provider.issuer} returned no ID token; the scopes must include openid")
    return token

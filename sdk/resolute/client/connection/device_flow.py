"""Signing in at an OpenID provider from a terminal: the device flow of RFC 8628.

The terminal shows a code of the provider, which the user confirms in any browser. Neither a password nor a
secret passes through this program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.contracts.calls import openid
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import FailedPreconditionError, UnauthenticatedError, UnavailableError

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_DEFAULT_INTERVAL = 5.0
_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 1.0, 60.0
_SLOW_DOWN_SECONDS = 5.0
_DEFAULT_SECONDS = 600.0
_LONGEST_SECONDS = 3600.0


@dataclass(frozen=True)
class Provider:
    """The OpenID provider that the cluster names."""

    issuer: str
    client_id: str
    scopes: Sequence[str]


@dataclass(frozen=True)
class Confirmation:
    """The page and the code by which the user confirms the login."""

    url: str
    """The page to open."""
    code: str
    """The code that the page shows or asks for."""
    complete_url: str
    """The page with the code filled in; empty if the provider offers none."""


def sign_in(
    provider: Provider,
    show: Callable[[Confirmation], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Clock = SYSTEM_CLOCK,
) -> str:
    """Returns an ID token, once the person has confirmed the code.

    Args:
        provider: The provider.
        show: Shows the user the page and the code.
        sleep: Waits some seconds before the provider is asked again.
        clock: Tells when the code has expired.

    Raises:
        FailedPreconditionError: The provider has no device flow.
        UnauthenticatedError: The person refused, or took too long.
        UnavailableError: The provider does not answer as it should.
    """
    described = openid.describe(provider.issuer)
    token_url = openid.endpoint(described, "token_endpoint")
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
    interval = max(_SHORTEST_INTERVAL, _seconds(started, "interval", _DEFAULT_INTERVAL))
    lifetime = min(_LONGEST_SECONDS, _seconds(started, "expires_in", _DEFAULT_SECONDS))
    ends_at = clock.monotonic() + lifetime
    failure: UnavailableError | None = None
    while clock.monotonic() < ends_at:
        sleep(min(interval, _LONGEST_INTERVAL))
        try:
            answer, failure = openid.ask(token_url, fields), None
        except UnavailableError as unavailable:
            failure = unavailable  # the person may be confirming the code
            continue
        error = answer.get("error", "")
        if not error:
            return _id_token(answer, provider)
        if error == "slow_down":
            interval += _SLOW_DOWN_SECONDS
        elif error != "authorization_pending":
            raise UnauthenticatedError(f"{provider.issuer} did not sign you in: {openid.reason(answer)}")
    raise failure or UnauthenticatedError(
        f"the code was not confirmed within {lifetime:.0f} seconds; log in again"
    )


def _start(provider: Provider, described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Asks for a code."""
    name = "device_authorization_endpoint"
    if not described.get(name):
        raise FailedPreconditionError(
            f"{provider.issuer} offers no sign-in from a terminal (device flow); use a token"
        )
    answer = openid.ask(
        openid.endpoint(described, name),
        {"client_id": provider.client_id, "scope": " ".join(provider.scopes)},
    )
    if not {"device_code", "user_code", "verification_uri"} <= answer.keys():
        raise UnavailableError(f"{provider.issuer} refuses to sign in: {openid.reason(answer)}")
    return answer


def _seconds(answer: Mapping[str, Any], name: str, default: float) -> float:
    """A number of seconds that a provider names; the default for what is none."""
    value = answer.get(name)
    return float(value) if isinstance(value, (int, float)) and 0 < value < math.inf else default


def _id_token(answer: Mapping[str, Any], provider: Provider) -> str:
    token = answer.get("id_token")
    if not isinstance(token, str):
        raise UnavailableError(f"{provider.issuer} returned no ID token; the scopes must include openid")
    return token

"""Verifies ID tokens of the OpenID provider."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Any

import jwt

from resolute.contracts.calls import openid
from resolute.errors import PermissionDeniedError, UnauthenticatedError, UnavailableError
from resolute_experiments.access.openid_settings import OpenIdSettings

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_OLDEST_SECONDS = 600
_LEEWAY_SECONDS = 60
_FETCH_SECONDS = 10


@dataclass(frozen=True)
class Identity:
    """Whom the provider has signed in."""

    subject: str
    """Names the person for good."""
    name: str
    """What the person is called now."""
    groups: frozenset[str]


class IdTokenVerifier:
    """Verifies ID tokens. Its methods block.

    Args:
        settings: The provider.
    """

    def __init__(self, settings: OpenIdSettings) -> None:
        self._settings = settings
        self._keys: jwt.PyJWKClient | None = None

    def verify(self, token: str, *, nonce: str, now: float) -> Identity:
        """Returns whom a token is about.

        Args:
            token: The token.
            nonce: What it must carry; empty for anything.
            now: Unix time.

        Raises:
            UnauthenticatedError: It is not valid, or not for this cluster.
            PermissionDeniedError: It does not say in which groups the person is.
            UnavailableError: The provider does not answer.
        """
        settings = self._settings
        try:
            if self._keys is None:
                self._keys = jwt.PyJWKClient(self._key_url(), timeout=_FETCH_SECONDS)
            key = self._keys.get_signing_key_from_jwt(token)
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=_ALGORITHMS,
                audience=settings.client_id,
                issuer=settings.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "sub", "aud", "iss"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise UnavailableError(
                f"the OpenID provider {settings.issuer} does not answer: {error}"
            ) from error
        except (OSError, ValueError) as error:
            raise UnavailableError(f"{settings.issuer} does not publish its keys: {error}") from error
        # A TypeError: the algorithm in the token's header is not that of the key.
        except (jwt.PyJWTError, TypeError) as error:
            raise UnauthenticatedError(f"the ID token is not accepted: {error}; sign in again") from error
        if claims.get("azp", settings.client_id) != settings.client_id:
            raise UnauthenticatedError("the ID token was issued to another client; sign in again")
        if now - float(claims["iat"]) > _OLDEST_SECONDS:
            raise UnauthenticatedError("the ID token is older than ten minutes; sign in again")
        if nonce and not hmac.compare_digest(str(claims.get("nonce", "")), nonce):
            raise UnauthenticatedError("the ID token is that of another sign-in; sign in again")
        groups = claims.get(settings.groups_claim)
        # Not the same as none: a provider that is set up wrongly must not take anybody's roles away.
        if groups is None:
            raise PermissionDeniedError(
                f"the ID token has no claim {settings.groups_claim!r}; ask an operator to let it be sent, "
                "or name the right one in RESOLUTE_OPENID_GROUPS_CLAIM"
            )
        found = groups if isinstance(groups, list) else [groups]
        return Identity(
            subject=str(claims["sub"]),
            name=str(claims.get(settings.name_claim, "")),
            groups=frozenset(one for one in found if isinstance(one, str)),
        )

    def _key_url(self) -> str:
        issuer = self._settings.issuer
        url = openid.endpoint(openid.describe(issuer), "jwks_uri")
        if not url:
            raise UnavailableError(f"the OpenID provider {issuer} does not say where its keys are")
        return url

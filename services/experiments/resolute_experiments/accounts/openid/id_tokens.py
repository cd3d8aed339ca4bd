"""Verifies ID tokens of the OpenID provider."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from functools import partial
from typing import Any

import jwt

from resolute.contracts.clock import Clock
from resolute.errors import PermissionDeniedError, UnauthenticatedError
from resolute_experiments.accounts.openid.provider_keys import ALGORITHMS, ProviderKey, ProviderKeys
from resolute_experiments.accounts.openid.settings import OpenIdSettings
from resolute_serving.workers.threads import BoundedThreads

_OLDEST_SECONDS = 600
_LEEWAY_SECONDS = 60
_THREADS = 4
"""Those of sign-ins that wait for the keys of the provider."""


@dataclass(frozen=True)
class Identity:
    """The identity that the provider has authenticated."""

    subject: str
    """Names the person for good."""
    name: str
    """What the person is called now."""
    groups: frozenset[str]
    token_digest: str
    """Identifies the ID token, which is good for one session."""


class IdTokenVerifier:
    """Verifies ID tokens. Close it after use.

    Args:
        settings: The provider.
        clock: Tells the time.
    """

    def __init__(self, settings: OpenIdSettings, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._keys = ProviderKeys(settings.issuer, clock)
        self._threads = BoundedThreads("openid-keys", threads=_THREADS)

    async def verify(self, token: str, *, nonce: str) -> Identity:
        """Returns whom a token is about.

        Args:
            token: The token.
            nonce: What it must carry; empty for a token without one, such as that of the device flow.

        Raises:
            UnauthenticatedError: It is not valid, or not for this cluster.
            PermissionDeniedError: It does not say in which groups the person is.
            UnavailableError: The provider does not answer.
        """
        # The provider is asked for nothing that names another provider, or no key at all.
        key_id = self._key_id(token)
        key = await self._threads.run(partial(self._keys.key, key_id))
        claims = self._claims(token, key)
        self._check_times(claims)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise UnauthenticatedError("the ID token is that of another sign-in; sign in again")
        # The signed part alone: a token with another spelling of the signature is the same token.
        digest = hashlib.sha256(token.rpartition(".")[0].encode()).hexdigest()
        return self._identity(claims, digest)

    def close(self) -> None:
        """Ends its threads."""
        self._threads.close()

    def _key_id(self, token: str) -> str:
        """Checks what can be checked without a key."""
        try:
            header = jwt.get_unverified_header(token)
            jwt.decode(
                token,
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                options={"verify_signature": False, "verify_aud": True, "verify_iss": True},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise _refusal(error) from error
        key_id = header.get("kid")
        if not isinstance(key_id, str) or header.get("alg") not in ALGORITHMS:
            raise UnauthenticatedError("the ID token does not name a public key; sign in again")
        if str(header.get("typ", "JWT")).upper() != "JWT":
            raise UnauthenticatedError("this is a token of another kind, not an ID token; sign in again")
        return key_id

    def _claims(self, token: str, key: ProviderKey) -> dict[str, Any]:
        client = self.settings.client_id
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.public_key.key,
                algorithms=key.algorithms,
                audience=client,
                issuer=self.settings.issuer,
                options={
                    "require": ["exp", "iat", "sub", "aud", "iss"],
                    # By the clock of this service, below.
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        # A TypeError: the algorithm in the token's header is not that of the key.
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise _refusal(error) from error
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else client) != client:
            raise UnauthenticatedError("the ID token was issued to another client; sign in again")
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        now = self._clock.time()
        try:
            issued, ends = float(claims["iat"]), float(claims["exp"])
            begins = float(claims.get("nbf", issued))
        except (TypeError, ValueError) as error:
            raise _refusal(error) from error
        if now - issued > _OLDEST_SECONDS:
            raise UnauthenticatedError("the ID token is older than ten minutes; sign in again")
        if not max(issued, begins) - _LEEWAY_SECONDS <= now < ends + _LEEWAY_SECONDS:
            raise UnauthenticatedError(
                "the ID token has expired, or is not valid yet; sign in again, or ask an operator to compare "
                "the clocks of the provider and of this cluster"
            )

    def _identity(self, claims: dict[str, Any], digest: str) -> Identity:
        groups = claims.get(self.settings.groups_claim)
        # Not the same as none: a provider that is set up wrongly must not take anybody's roles away.
        if groups is None:
            raise PermissionDeniedError(
                f"the ID token has no claim {self.settings.groups_claim!r}; ask an operator to let it be "
                "sent, or to name the right one in RESOLUTE_OPENID_GROUPS_CLAIM"
            )
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject.strip():
            raise UnauthenticatedError("the ID token names no user: its claim 'sub' is empty; sign in again")
        listed = groups if isinstance(groups, list) else [groups]
        return Identity(
            subject=subject,
            name=str(claims.get(self.settings.name_claim, "")),
            groups=frozenset(group for group in listed if isinstance(group, str)),
            token_digest=digest,
        )


def _refusal(error: Exception) -> UnauthenticatedError:
    return UnauthenticatedError(f"the ID token is not accepted: {error}; sign in again")

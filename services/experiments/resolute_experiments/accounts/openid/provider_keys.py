"""The public keys of the OpenID provider."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jwt

from resolute.contracts.calls import openid
from resolute.contracts.clock import Clock
from resolute.errors import UnauthenticatedError, UnavailableError

_KEPT_SECONDS = 300.0
_COOLDOWN_SECONDS = 30.0
"""The provider is asked no more often, whatever strangers send, and whether it answers or not."""


ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Algorithms with public keys that ID tokens may be signed by."""


@dataclass(frozen=True)
class ProviderKey:
    """A key of the provider."""

    public_key: jwt.PyJWK
    algorithms: Sequence[str]
    """What tokens may be signed with by it: what it names itself, or all where it names none."""


class ProviderKeys:
    """Fetches the keys, and caches them for some minutes. Its methods block.

    Args:
        issuer: The provider.
        clock: Clock for the age of the keys.
    """

    def __init__(self, issuer: str, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: Mapping[str, ProviderKey] = {}
        self._read_at = self._asked_at = -math.inf
        self._failure = ""

    def key(self, key_id: str) -> ProviderKey:
        """Returns a key.

        Raises:
            UnauthenticatedError: The provider has no such key.
            UnavailableError: The provider does not answer.
        """
        with self._lock:
            now = self._clock.monotonic()
            if now - self._read_at >= _KEPT_SECONDS:
                self._keys = {}
            if key_id not in self._keys and now - self._asked_at >= _COOLDOWN_SECONDS:
                self._refresh()
            if key_id in self._keys:
                return self._keys[key_id]
            if self._failure:
                raise UnavailableError(self._failure)
        raise UnauthenticatedError(
            "the provider does not know the key of the ID token; sign in again in a minute"
        )

    def _refresh(self) -> None:
        self._failure = ""
        try:
            self._keys = self._read()
            self._read_at = self._clock.monotonic()
        except UnavailableError as error:
            self._failure = str(error)
        self._asked_at = self._clock.monotonic()

    def _read(self) -> Mapping[str, ProviderKey]:
        document = openid.ask(openid.endpoint(openid.describe(self._issuer), "jwks_uri"))
        try:
            keys = jwt.PyJWKSet.from_dict(dict(document)).keys
            algorithms = {
                entry["kid"]: entry.get("alg")
                for entry in document["keys"]
                if isinstance(entry, dict)
                and isinstance(entry.get("kid"), str)
                and entry.get("use") in {None, "sig"}
            }
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError) as error:
            raise UnavailableError(f"{self._issuer} does not publish its keys: {error}") from error
        return {
            key.key_id: ProviderKey(key, [named] if (named := algorithms[key.key_id]) else ALGORITHMS)
            for key in keys
            if key.key_id and key.key_id in algorithms and key.public_key_use in {None, "sig"}
        }

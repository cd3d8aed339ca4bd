"""Tokens by which services call each other. They are renewed long before they expire."""

from __future__ import annotations

from resolute.contracts.clock import Clock, DueTime
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import ServiceAccount

_TTL_SECONDS = 86_400.0


class ServiceTokens:
    """Issues the tokens of the process that has the signing key.

    Args:
        signer: Signs the tokens.
        account: The service that the tokens identify.
        clock: Clock for the renewal, which also detects changes of the signer's clock.
    """

    def __init__(self, signer: TokenSigner, account: ServiceAccount, *, clock: Clock) -> None:
        self._signer = signer
        self._account = account
        self._renewal = DueTime(clock)
        self._token = self._key_id = ""

    def __call__(self) -> str:
        """The current token."""
        if self._renewal.reached or self._key_id != self._signer.key_id:
            self._key_id = self._signer.key_id
            self._token = self._signer.service(self._account, ttl=_TTL_SECONDS)
            self._renewal.set(_TTL_SECONDS / 2)
        return self._token

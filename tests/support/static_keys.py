"""Keys of a test that verifies tokens."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from resolute_serving.auth.tokens import RevokedTokens


@dataclass(frozen=True)
class StaticKeys:
    """Keys that are at hand and stay the same."""

    by_id: Mapping[str, Ed25519PublicKey]
    """The public keys."""
    ended: RevokedTokens = field(default_factory=RevokedTokens)
    """What the experiments service in this process knows of tokens that were ended early."""

    async def keys(self, *, missing: str = "") -> Mapping[str, Ed25519PublicKey]:
        """The keys by identifier."""
        return self.by_id

    async def revoked(self) -> Container[str]:
        """Identifiers of tokens that were ended before their time."""
        return await self.ended.current()

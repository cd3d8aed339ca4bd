"""Authenticates callers by their tokens, ends streams with their tokens, and counts refusals."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from resolute import errors
from resolute_serving.auth.forwarded_peers import ForwardedPeers
from resolute_serving.auth.open_streams import OpenStreams
from resolute_serving.auth.policy.permissions import PERMISSIONS, Rule
from resolute_serving.auth.refusals import Refusals, client_address
from resolute_serving.auth.tokens import TokenVerifier, VerifiedToken
from resolute_serving.context import (
    Anonymous,
    current_peer,
    current_principal,
    current_token_expired,
    current_token_id,
)

_NO_RULE = Rule()
_SIGN_IN = frozenset(
    f"/resolute.api.experiments.v1.AccessService/{name}"
    for name in ("Login", "LoginWithIdToken", "RedeemSignInCode")
)
_COUNTED = {"UNAUTHENTICATED": "unauthenticated", "PERMISSION_DENIED": "permission_denied"}


class CallAccess:
    """Authenticates the calls of a server.

    Args:
        verifier: Verifies tokens.
        streams: Ends open streams with their tokens.
        refusals: Counts refused calls.
        peers: Reads the caller of a gateway.
    """

    def __init__(
        self, verifier: TokenVerifier, *, streams: OpenStreams, refusals: Refusals, peers: ForwardedPeers
    ) -> None:
        self._peers = peers
        self._verifier = verifier
        self._streams = streams
        self._refusals = refusals

    def note_peer(self, metadata: Mapping[str, object], *, direct: str) -> None:
        """Sets the peer of the current context.

        Args:
            metadata: What came with the call.
            direct: The other end of its connection.
        """
        current_peer.set(self._peers.peer(metadata, direct))

    def known(self, header: str) -> VerifiedToken | None:
        """The token of a call if it was verified before; its time may be over since.

        Args:
            header: Its authorization metadata; empty if it has none.
        """
        return self._verifier.remembered(header.partition(" ")[2])

    async def authenticate(self, method: str, header: str) -> VerifiedToken | None:
        """Reads the token of a call and sets the caller of the current context.

        Args:
            method: Full name of the call.
            header: Its authorization metadata; empty if it has none.

        Returns:
            The token; None if the call has none and needs none.

        Raises:
            UnauthenticatedError: There is no valid token.
        """
        rule = PERMISSIONS.get(method, _NO_RULE)
        current_principal.set(Anonymous())
        if not header:
            if not rule.public:
                raise errors.UnauthenticatedError(
                    "the call carries no token; log in by `resolute user login NAME`, or give one with it"
                )
            return None
        scheme, _, text = header.partition(" ")
        if scheme.lower() != "bearer" or not text:
            raise errors.UnauthenticatedError("the authorization metadata must be 'Bearer TOKEN'")
        token = await self._verifier.verify(text, expired=rule.expired)
        current_principal.set(token.principal)
        current_token_id.set(token.token_id)
        current_token_expired.set(self._verifier.has_expired(token))
        return token

    def stream(self, token: VerifiedToken | None) -> AbstractContextManager[None]:
        """The current task serves a stream until the block ends, or until its token has ended.

        Raises:
            QuotaError: The caller has as many streams as it may.
            UnavailableError: The server has as many as it may.
        """
        return self._streams.registered(token, address=client_address(current_peer.get()))

    def note_refusal(self, method: str, error: errors.ResoluteError) -> None:
        """Counts a failed call if it was refused. Sign-ins are counted where their names are known."""
        action = _COUNTED.get(error.status)
        if action is not None and method not in _SIGN_IN:
            call = "/".join(part.rpartition(".")[2] for part in method.strip("/").split("/"))
            self._refusals.note(action, f"call {call}", peer=client_address(current_peer.get()))

"""Signed tokens. The experiments service signs with Ed25519; all services verify with its published keys."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import ResoluteError, UnauthenticatedError
from resolute_serving.auth.signing_keys import KeyFile
from resolute_serving.context import Principal, Role, ServiceAccount, TrialRun, User

_ALGORITHM = "EdDSA"
_REREAD_SECONDS = 0.4
_REMEMBERED = 512
"""Verified tokens that are kept in memory. Each run has several, one after another."""


class KeySource(Protocol):
    """Returns the public keys that verify a cluster's tokens, and the revoked tokens."""

    async def keys(self, *, missing: str = "") -> Mapping[str, Ed25519PublicKey]:
        """The keys by identifier; asks again when ``missing`` is not among those known."""

    async def revoked(self) -> Container[str]:
        """Identifiers of tokens that were ended before their time, some seconds old at most."""


class RevokedTokens:
    """The revoked tokens, which verifiers in the process of the experiments service read."""

    def __init__(self) -> None:
        self._ids: frozenset[str] = frozenset()
        self._read: Callable[[], Awaitable[Iterable[str]]] | None = None
        self._clock: Clock = SYSTEM_CLOCK
        self._read_at: float | None = None

    def follow(self, read: Callable[[], Awaitable[Iterable[str]]], *, clock: Clock) -> None:
        """Asks for the identifiers whenever what is known is half a second old.

        Args:
            read: Returns all identifiers that count.
            clock: Tells how old they are.
        """
        self._read = read
        self._clock = clock

    def unfollow(self) -> None:
        """Stops asking and keeps the identifiers that are known."""
        self._read = None

    def replace(self, ids: Iterable[str]) -> None:
        """Replaces the identifiers."""
        self._ids = frozenset(ids)

    async def current(self) -> Container[str]:
        """The identifiers; while they cannot be read, those that were read last."""
        now = self._clock.monotonic()
        if self._read is not None and (self._read_at is None or now - self._read_at >= _REREAD_SECONDS):
            # Noted before it reads: of many calls at the same time, one reads and the others continue.
            self._read_at = now
            with contextlib.suppress(ResoluteError):
                self.replace(await self._read())
        return self._ids


@dataclass(frozen=True)
class OwnKeys:
    """The keys of the signing process, read from their file."""

    file: KeyFile
    """The file."""
    ended: RevokedTokens = field(default_factory=RevokedTokens)
    """What the experiments service in this process knows of tokens that were ended early."""

    async def keys(self, *, missing: str = "") -> Mapping[str, Ed25519PublicKey]:
        """The keys by identifier."""
        keys = _public_keys(self.file())
        return keys if not missing or missing in keys else _public_keys(self.file.look_again())

    async def revoked(self) -> Container[str]:
        """Identifiers of tokens that were ended before their time."""
        return await self.ended.current()


def public_bytes(key: Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def key_id(key: Ed25519PublicKey) -> str:
    """Identifies a public key: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(public_bytes(key)).hexdigest()[:16]


@lru_cache(maxsize=16)
def _key_id(key: Ed25519PrivateKey) -> str:
    return key_id(key.public_key())


@lru_cache(maxsize=16)
def _public_keys(keys: tuple[Ed25519PrivateKey, ...]) -> Mapping[str, Ed25519PublicKey]:
    return {_key_id(key): key.public_key() for key in keys}


class TokenSigner:
    """Issues tokens of one cluster.

    Args:
        key: The cluster's private key, or the file of a key that may be rotated.
        cluster_id: Audience of every token, so that one cluster's tokens are invalid for another.
        clock: Clock for the issue time of tokens.
    """

    def __init__(self, key: Ed25519PrivateKey | KeyFile, *, cluster_id: str, clock: Clock) -> None:
        self._keys = key if isinstance(key, KeyFile) else lambda: (key,)
        self._keys_now = key.look_again if isinstance(key, KeyFile) else self._keys
        self._cluster_id = cluster_id
        self._clock = clock

    @property
    def public_key(self) -> Ed25519PublicKey:
        """The public key of the current signing key."""
        return self._keys()[0].public_key()

    @property
    def key_id(self) -> str:
        """Identifies that key."""
        return _key_id(self._keys()[0])

    @property
    def public_keys(self) -> Sequence[Ed25519PublicKey]:
        """The keys that verify tokens: the current one, then earlier ones.

        Their file is looked at, because other processes may sign by it as well.
        """
        return [key.public_key() for key in self._keys_now()]

    def user(self, user: User, *, ttl: float, token_id: str = "") -> str:
        """Issues a token for a person, valid for ``ttl`` seconds.

        Args:
            user: The user that it identifies.
            ttl: Seconds that it is valid.
            token_id: Identifies it, so that it can be ended before its time; empty for a new one.
        """
        claims: dict[str, Any] = {
            "sub": user.name,
            "kind": _kind(user),
            "role": user.role.value,
            "user_id": user.user_id,
            "jti": token_id or str(uuid.uuid4()),
        }
        if user.workspace_id:
            claims["workspace_id"] = user.workspace_id
        return self._sign(claims, ttl=ttl)

    def trial(self, run: TrialRun, *, ttl: float) -> str:
        """Issues a token for the processes of one run, valid for ``ttl`` seconds."""
        return self._sign(
            {
                "sub": run.trial_id,
                "kind": "trial",
                "run": run.run,
                "experiment": run.experiment_id,
                "allocation": run.allocation_id,
                "workspace": run.workspace,
                "workspace_id": run.workspace_id,
                "storage": run.storage,
                "source": run.source_checkpoint_id,
            },
            ttl=ttl,
        )

    def service(self, account: ServiceAccount, *, ttl: float, token_id: str = "") -> str:
        """Issues a token for another service, valid for ``ttl`` seconds.

        Args:
            account: Which service.
            ttl: Seconds that it is valid.
            token_id: Identifies it, so that it can be ended before its time; empty for a new one.
        """
        claims = {"sub": account.name, "kind": "service", "jti": token_id or str(uuid.uuid4())}
        return self._sign(claims, ttl=ttl)

    def device(self, user_id: int, *, ttl: float, device_id: str = "") -> str:
        """Issues a token that says that a user has signed in from a device. It authenticates no one.

        Args:
            user_id: The user.
            ttl: Seconds that it is valid.
            device_id: Identifies the device; empty for a new one.
        """
        claims = {"sub": str(user_id), "kind": "device", "jti": device_id or str(uuid.uuid4())}
        return self._sign(claims, ttl=ttl)

    def device_id(self, token: str, *, user_id: int) -> str:
        """Reads a device token.

        Args:
            token: What a client sent.
            user_id: The user who wants to sign in.

        Returns:
            The identifier of the device; empty if the token is not a valid one of this user.
        """
        known = {key_id(key): key for key in self.public_keys}
        try:
            key = known[jwt.get_unverified_header(token).get("kid", "")]
            claims = _decoded(token, key, cluster_id=self._cluster_id)
        except (jwt.InvalidTokenError, KeyError, TypeError):
            return ""
        valid = claims.get("kind") == "device" and claims["sub"] == str(user_id)
        return str(claims.get("jti", "")) if valid and claims["exp"] > self._clock.time() else ""

    def derive_secret(self, purpose: str) -> str:
        """Derives a secret that only the holder of the signing key can: the same for the same purpose.

        It is the oldest key's: the nodes of a run get the same one, also when a key is rotated meanwhile.

        Args:
            purpose: Names what the secret is for, such as ``collectives of ALLOCATION``.
        """
        return hmac.new(self._keys()[-1].private_bytes_raw(), purpose.encode(), hashlib.sha256).hexdigest()

    def _sign(self, claims: dict[str, Any], *, ttl: float) -> str:
        now = int(self._clock.time())
        claims |= {"aud": self._cluster_id, "iat": now, "exp": now + int(ttl)}
        key = self._keys()[0]
        return jwt.encode(claims, key, algorithm=_ALGORITHM, headers={"kid": _key_id(key)})


@dataclass(frozen=True)
class VerifiedToken:
    """The content of a token with a verified signature."""

    principal: Principal
    """Who it speaks for."""
    expires: float
    """Unix time."""
    token_id: str
    """Identifies it; empty for the token of a run."""
    key_id: str
    """The key that signed it."""


class TokenVerifier:
    """Returns the caller that a token identifies.

    Args:
        source: Returns the public keys.
        cluster_id: The audience that tokens must have.
        clock: Clock for the expiry of tokens.
    """

    def __init__(self, source: KeySource, *, cluster_id: str, clock: Clock) -> None:
        self._source = source
        self._cluster_id = cluster_id
        self._clock = clock
        # A signature costs as much to check as a small call to serve, and the same few tokens come again.
        self._verified: OrderedDict[str, VerifiedToken] = OrderedDict()

    async def verify(self, token: str, *, expired: bool = False) -> VerifiedToken:
        """Returns what the token says.

        Args:
            token: The token.
            expired: Whether to accept an expired token, whose owner requests the next one.

        Raises:
            UnauthenticatedError: It is malformed, expired, revoked, forged, or of another cluster.
        """
        known = self._verified.get(token)
        verified = known if known is not None else await self._check(token)
        await self.check_current(verified, expired=expired)
        if known is None:
            self._verified[token] = verified
            if len(self._verified) > _REMEMBERED:
                self._verified.popitem(last=False)
        return verified

    def remembered(self, token: str) -> VerifiedToken | None:
        """What a token says that was verified lately."""
        return self._verified.get(token)

    async def check_current(self, verified: VerifiedToken, *, expired: bool = False) -> None:
        """Makes sure that a token has not ended since it was verified.

        Raises:
            UnauthenticatedError: It has expired, or was revoked, or its key was dropped.
        """
        if verified.key_id not in await self._source.keys(missing=verified.key_id):
            raise UnauthenticatedError("the key that signed the token was dropped; log in again")
        if not expired and self.has_expired(verified):
            raise UnauthenticatedError("the token has expired; log in again")
        if verified.token_id and verified.token_id in await self._source.revoked():
            raise UnauthenticatedError("the token was revoked; log in again")

    def has_expired(self, verified: VerifiedToken) -> bool:
        """Whether the time of a token is over."""
        return verified.expires <= self._clock.time()

    async def _check(self, token: str) -> VerifiedToken:
        """Verifies a token's signature and claims."""
        try:
            identifier = jwt.get_unverified_header(token).get("kid", "")
            key = (await self._source.keys(missing=identifier)).get(identifier)
            if key is None:
                raise UnauthenticatedError("the token was not issued by this cluster; log in here")
            claims = _decoded(token, key, cluster_id=self._cluster_id)
        except jwt.InvalidAudienceError as error:
            raise UnauthenticatedError("the token is for another cluster; log in here") from error
        except jwt.InvalidTokenError as error:
            raise UnauthenticatedError(f"the token is not valid ({error}); log in again") from error
        token_id = str(claims.get("jti", ""))
        if claims.get("kind") in {"user", "reader"} and not token_id:
            raise UnauthenticatedError("the token is of an early release and cannot be revoked; log in again")
        return VerifiedToken(_principal(claims), float(claims["exp"]), token_id, identifier)


def _decoded(token: str, key: Ed25519PublicKey, *, cluster_id: str) -> dict[str, Any]:
    """Checks the signature and the cluster of a token, not its time: the clock is injected."""
    return jwt.decode(
        token,
        key,
        algorithms=[_ALGORITHM],
        audience=cluster_id,
        options={"require": ["sub", "aud", "exp"], "verify_exp": False, "verify_iat": False},
    )


def _kind(user: User) -> str:
    # Kinds of their own: services that do not know what limits these users refuse them.
    if user.workspace_id:
        return "script"
    return "reader" if user.read_only else "user"


def _principal(claims: Mapping[str, Any]) -> Principal:
    try:
        if claims["kind"] == "user":
            return User(name=claims["sub"], role=Role(claims["role"]), user_id=int(claims.get("user_id", 0)))
        if claims["kind"] == "reader":
            role, number = Role(claims["role"]), int(claims["user_id"])
            return User(name=claims["sub"], role=role, user_id=number, read_only=True)
        if claims["kind"] == "script":
            return User(
                name=claims["sub"],
                role=Role(claims["role"]),
                user_id=int(claims["user_id"]),
                workspace_id=int(claims["workspace_id"]),
            )
        if claims["kind"] == "trial":
            return TrialRun(
                trial_id=claims["sub"],
                run=int(claims["run"]),
                experiment_id=claims["experiment"],
                allocation_id=claims["allocation"],
                workspace=claims["workspace"],
                workspace_id=int(claims.get("workspace_id", 0)),
                storage=str(claims.get("storage", "")),
                source_checkpoint_id=str(claims.get("source", "")),
            )
        if claims["kind"] == "service":
            return ServiceAccount(name=claims["sub"])
    except (KeyError, ValueError, TypeError) as error:
        raise UnauthenticatedError(f"the token lacks a claim ({error}); log in again") from error
    raise UnauthenticatedError("the token is of an unknown kind; upgrade the server")

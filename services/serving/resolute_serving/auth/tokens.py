"""Signed tokens: the experiments service signs with Ed25519, everyone verifies with its published keys."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from resolute.contracts.clock import Clock
from resolute.errors import UnauthenticatedError
from resolute_serving.context import Principal, Role, ServiceAccount, TrialRun, User

_ALGORITHM = "EdDSA"
_REMEMBERED = 512
"""Verified tokens that are kept in memory. Each run has several, one after another."""


class KeySource(Protocol):
    """Returns the public keys that verify a cluster's tokens, and names the tokens that were ended early."""

    async def keys(self, *, missing: str = "") -> Mapping[str, Ed25519PublicKey]:
        """The keys by identifier; asks again when ``missing`` is not among those known."""

    async def revoked(self) -> Container[str]:
        """Identifiers of tokens that were ended before their time, some seconds old at most."""


class RevokedTokens:
    """Tokens that were ended before their time: the experiments service writes, verifiers beside it read."""

    def __init__(self) -> None:
        self._ids: frozenset[str] = frozenset()

    def replace(self, ids: Iterable[str]) -> None:
        """Takes note of all identifiers that count from now on."""
        self._ids = frozenset(ids)

    def __contains__(self, token_id: object) -> bool:
        return token_id in self._ids


@dataclass(frozen=True)
class StaticKeys:
    """Keys that are at hand: in the process that signs, and in embedded mode."""

    by_id: Mapping[str, Ed25519PublicKey]
    """The public keys."""
    ended: RevokedTokens = field(default_factory=RevokedTokens)
    """What the experiments service in this process knows of tokens that were ended early."""

    async def keys(self, *, missing: str = "") -> Mapping[str, Ed25519PublicKey]:
        """The keys by identifier."""
        return self.by_id

    async def revoked(self) -> Container[str]:
        """Identifiers of tokens that were ended before their time."""
        return self.ended


def load_or_create_key(path: Path) -> Ed25519PrivateKey:
    """Reads the signing key of a cluster, or makes one readable by its owner alone."""
    if not path.exists():
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(pem)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError(f"{path} does not hold an Ed25519 private key; move it away to have a new one made")
    return key


def public_bytes(key: Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def key_id(key: Ed25519PublicKey) -> str:
    """Identifies a public key: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(public_bytes(key)).hexdigest()[:16]


class TokenSigner:
    """Issues tokens of one cluster.

    Args:
        key: The cluster's private key.
        cluster_id: Audience of every token, so that one cluster's tokens are nothing to another.
        clock: Tells when a token begins.
    """

    def __init__(self, key: Ed25519PrivateKey, *, cluster_id: str, clock: Clock) -> None:
        self._key = key
        self._cluster_id = cluster_id
        self._clock = clock
        self.public_key = key.public_key()
        self.key_id = key_id(self.public_key)

    def user(self, user: User, *, ttl: float, token_id: str = "") -> str:
        """Issues a token for a person, valid for ``ttl`` seconds.

        Args:
            user: Whom it speaks for.
            ttl: Seconds that it is valid.
            token_id: Identifies it, so that it can be ended before its time; empty for one that cannot.
        """
        claims = {"sub": user.name, "kind": "user", "role": user.role.value, "user_id": user.user_id}
        return self._sign({**claims, "jti": token_id} if token_id else claims, ttl=ttl)

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
            },
            ttl=ttl,
        )

    def service(self, account: ServiceAccount, *, ttl: float) -> str:
        """Issues a token for another service, valid for ``ttl`` seconds."""
        return self._sign({"sub": account.name, "kind": "service"}, ttl=ttl)

    def derive_secret(self, purpose: str) -> str:
        """Derives a secret that only the holder of the signing key can: the same for the same purpose.

        Args:
            purpose: Names what the secret is for, such as ``collectives of ALLOCATION``.
        """
        return hmac.new(self._key.private_bytes_raw(), purpose.encode(), hashlib.sha256).hexdigest()

    def _sign(self, claims: dict[str, Any], *, ttl: float) -> str:
        now = int(self._clock.time())
        claims |= {"aud": self._cluster_id, "iat": now, "exp": now + int(ttl)}
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM, headers={"kid": self.key_id})


@dataclass(frozen=True)
class _Verified:
    """What a token says, its signature checked."""

    principal: Principal
    expires: float
    token_id: str


class TokenVerifier:
    """Returns who a token speaks for.

    Args:
        source: Gives the public keys.
        cluster_id: The audience that tokens must have.
        clock: Tells whether a token has expired.
    """

    def __init__(self, source: KeySource, *, cluster_id: str, clock: Clock) -> None:
        self._source = source
        self._cluster_id = cluster_id
        self._clock = clock
        # A signature costs as much to check as a small call to serve, and the same few tokens come again.
        self._verified: OrderedDict[str, _Verified] = OrderedDict()

    async def verify(self, token: str) -> Principal:
        """Returns who the token speaks for.

        Raises:
            UnauthenticatedError: It is malformed, expired, revoked, forged, or of another cluster.
        """
        known = self._verified.get(token)
        verified = known if known is not None else await self._check(token)
        if verified.expires <= self._clock.time():
            self._verified.pop(token, None)
            raise UnauthenticatedError("the token has expired; log in again")
        if verified.token_id and verified.token_id in await self._source.revoked():
            raise UnauthenticatedError("the token was revoked; log in again")
        if known is None:
            self._verified[token] = verified
            if len(self._verified) > _REMEMBERED:
                self._verified.popitem(last=False)
        return verified.principal

    async def _check(self, token: str) -> _Verified:
        """Verifies a token's signature and claims."""
        try:
            identifier = jwt.get_unverified_header(token).get("kid", "")
            key = (await self._source.keys(missing=identifier)).get(identifier)
            if key is None:
                raise UnauthenticatedError("the token was not issued by this cluster; log in here")
            claims = jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                audience=self._cluster_id,
                options={"require": ["sub", "aud", "exp"], "verify_exp": False, "verify_iat": False},
            )
        except jwt.InvalidAudienceError as error:
            raise UnauthenticatedError("the token is for another cluster; log in here") from error
        except jwt.InvalidTokenError as error:
            raise UnauthenticatedError(f"the token is not valid ({error}); log in again") from error
        return _Verified(_principal(claims), float(claims["exp"]), str(claims.get("jti", "")))


def _principal(claims: Mapping[str, Any]) -> Principal:
    try:
        if claims["kind"] == "user":
            return User(name=claims["sub"], role=Role(claims["role"]), user_id=int(claims.get("user_id", 0)))
        if claims["kind"] == "trial":
            return TrialRun(
                trial_id=claims["sub"],
                run=int(claims["run"]),
                experiment_id=claims["experiment"],
                allocation_id=claims["allocation"],
                workspace=claims["workspace"],
                workspace_id=int(claims.get("workspace_id", 0)),
                storage=str(claims.get("storage", "")),
            )
        if claims["kind"] == "service":
            return ServiceAccount(name=claims["sub"])
    except (KeyError, ValueError, TypeError) as error:
        raise UnauthenticatedError(f"the token lacks a claim ({error}); log in again") from error
    raise UnauthenticatedError("the token is of an unknown kind; upgrade the server")

"""Tokens: who they speak for, and all the ways in which they are refused."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.clocks import ManualClock

from resolute.errors import UnauthenticatedError
from resolute_serving.auth.tokens import (
    RevokedTokens,
    StaticKeys,
    TokenSigner,
    TokenVerifier,
    load_or_create_key,
)
from resolute_serving.context import Principal, Role, ServiceAccount, TrialRun, User

RUN = TrialRun(trial_id="t", run=3, experiment_id="e", allocation_id="t.3", workspace="w", workspace_id=7)


class Cluster:
    """A signer with a verifier that trusts it."""

    def __init__(self, name: str = "here", key: Ed25519PrivateKey | None = None) -> None:
        self.clock = ManualClock()
        self.key = key or Ed25519PrivateKey.generate()
        self.signer = TokenSigner(self.key, cluster_id=name, clock=self.clock)
        self.ended = RevokedTokens()
        keys = StaticKeys({self.signer.key_id: self.signer.public_key}, self.ended)
        self.verifier = TokenVerifier(keys, cluster_id=name, clock=self.clock)

    def verify(self, token: str) -> Principal:
        return asyncio.run(self.verifier.verify(token)).principal


def test_tokens_speak_for_whom_they_were_issued() -> None:
    cluster = Cluster()
    ada = User("ada", Role.EDITOR, user_id=3)
    assert cluster.verify(cluster.signer.user(ada, ttl=60)) == ada
    assert cluster.verify(cluster.signer.trial(RUN, ttl=60)) == RUN
    assert cluster.verify(cluster.signer.service(ServiceAccount("logs"), ttl=60)) == ServiceAccount("logs")


def test_expired_token_is_refused() -> None:
    cluster = Cluster()
    token = cluster.signer.trial(RUN, ttl=60)
    cluster.clock.advance(61)
    with pytest.raises(UnauthenticatedError, match="expired"):
        cluster.verify(token)


def test_a_token_that_was_ended_early_is_refused_although_it_was_verified_before() -> None:
    cluster = Cluster()
    ada = User("ada", Role.EDITOR)
    first = cluster.signer.user(ada, ttl=60, token_id="first")
    second = cluster.signer.user(ada, ttl=60, token_id="second")
    assert cluster.verify(first) == cluster.verify(second) == ada
    cluster.ended.replace(["first"])
    with pytest.raises(UnauthenticatedError, match="revoked; log in again"):
        cluster.verify(first)
    assert cluster.verify(second) == ada
    assert cluster.verify(cluster.signer.user(ada, ttl=60)) == ada


def test_token_of_another_cluster_with_the_same_key_is_refused() -> None:
    here = Cluster("here")
    there = Cluster("there", here.key)
    with pytest.raises(UnauthenticatedError, match="another cluster"):
        here.verify(there.signer.trial(RUN, ttl=60))


def test_token_of_a_stranger_is_refused() -> None:
    with pytest.raises(UnauthenticatedError, match="not issued by this cluster"):
        Cluster().verify(Cluster().signer.trial(RUN, ttl=60))


@pytest.mark.parametrize("token", ["", "nonsense", "a.b.c"])
def test_malformed_token_is_refused(token: str) -> None:
    with pytest.raises(UnauthenticatedError, match="not valid"):
        Cluster().verify(token)


def test_unsigned_token_is_refused() -> None:
    cluster = Cluster()
    claims = {"sub": "root", "kind": "user", "role": "admin", "aud": "here", "exp": 9e12}
    forged = jwt.encode(claims, key="", algorithm="none", headers={"kid": cluster.signer.key_id})
    with pytest.raises(UnauthenticatedError):
        cluster.verify(forged)


def test_changed_claims_break_the_signature() -> None:
    cluster = Cluster()
    header, _, signature = cluster.signer.user(User("eve", Role.VIEWER), ttl=60).split(".")
    _, claims, _ = cluster.signer.user(User("eve", Role.ADMIN), ttl=60).split(".")
    with pytest.raises(UnauthenticatedError, match="not valid"):
        cluster.verify(f"{header}.{claims}.{signature}")


def test_signing_key_is_made_once_and_its_owner_alone_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "key.pem"
    first = load_or_create_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_or_create_key(path).private_bytes_raw() == first.private_bytes_raw()


def test_remembered_token_still_expires() -> None:
    cluster = Cluster()
    token = cluster.signer.trial(RUN, ttl=60)
    assert cluster.verify(token) == cluster.verify(token) == RUN
    cluster.clock.advance(61)
    for _ in range(2):
        with pytest.raises(UnauthenticatedError, match="expired"):
            cluster.verify(token)

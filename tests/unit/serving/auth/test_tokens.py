"""Tokens: who they speak for, and all the ways in which they are refused."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.clocks import ManualClock
from support.static_keys import StaticKeys

from resolute.errors import FailedPreconditionError, UnauthenticatedError
from resolute_serving.auth.service_tokens import ServiceTokens
from resolute_serving.auth.signing_keys import KeyFile, drop_old, load_or_create_key, rotate
from resolute_serving.auth.tokens import OwnKeys, RevokedTokens, TokenSigner, TokenVerifier
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


class Rotated:
    """A cluster whose keys are in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        keys = [KeyFile(path, clock=self.clock) for _ in range(2)]
        self.signer = TokenSigner(keys[0], cluster_id="here", clock=self.clock)
        self.verifier = TokenVerifier(OwnKeys(keys[1]), cluster_id="here", clock=self.clock)

    def speaks_for(self, token: str) -> Principal:
        return asyncio.run(self.verifier.verify(token)).principal


def test_tokens_of_an_old_key_are_valid_until_it_is_dropped(tmp_path: Path) -> None:
    cluster = Rotated(tmp_path / "key.pem")
    ada = User("ada", Role.EDITOR, user_id=3)
    old, device = cluster.signer.user(ada, ttl=60), cluster.signer.device(3, ttl=60, device_id="laptop")
    secret, first = cluster.signer.derive_secret("collectives of 1"), cluster.signer.key_id
    assert cluster.speaks_for(old) == ada

    rotate(cluster.path)
    cluster.clock.advance(1)
    new = cluster.signer.user(ada, ttl=60)
    assert jwt.get_unverified_header(new)["kid"] == cluster.signer.key_id != first
    assert cluster.speaks_for(old) == cluster.speaks_for(new) == ada
    assert cluster.signer.device_id(device, user_id=3) == "laptop"
    # Another node of a run that began before gets the same secret.
    assert cluster.signer.derive_secret("collectives of 1") == secret
    assert cluster.path.stat().st_mode & 0o777 == 0o600

    assert drop_old(cluster.path, now=None) == 1
    cluster.clock.advance(1)
    assert cluster.speaks_for(new) == ada
    with pytest.raises(UnauthenticatedError, match="the key that signed the token was dropped"):
        cluster.speaks_for(old)
    assert cluster.signer.device_id(device, user_id=3) == ""
    assert drop_old(cluster.path, now=None) == 0


def test_old_keys_are_kept_while_trials_may_need_them(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    with pytest.raises(FailedPreconditionError, match="no key yet"):
        rotate(path)
    load_or_create_key(path)
    rotate(path)
    rotated = path.stat().st_mtime
    with pytest.raises(FailedPreconditionError, match=r"wait for 1 minutes, or .* --now"):
        drop_old(path, now=rotated + 7199)
    assert len(KeyFile(path)()) == 2
    assert drop_old(path, now=rotated + 7200) == 1


def test_a_token_of_a_new_key_is_taken_before_the_file_is_looked_at_again(tmp_path: Path) -> None:
    cluster = Rotated(tmp_path / "key.pem")
    ada = User("ada", Role.EDITOR, user_id=3)
    assert cluster.speaks_for(cluster.signer.user(ada, ttl=60)) == ada
    rotate(cluster.path)
    elsewhere = TokenSigner(KeyFile(cluster.path), cluster_id="here", clock=cluster.clock)
    assert cluster.speaks_for(elsewhere.user(ada, ttl=60)) == ada


def test_calls_do_not_look_at_the_file_of_the_keys(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "key.pem"
    load_or_create_key(path)
    keys = KeyFile(path, clock=clock)
    kept = keys()
    path.write_bytes(b"nothing")
    assert [keys() for _ in range(100)] == [kept] * 100
    clock.advance(1)
    with pytest.raises(TypeError, match=str(path)):
        keys()


def test_services_call_each_other_with_the_new_key_within_a_second(tmp_path: Path) -> None:
    cluster = Rotated(tmp_path / "key.pem")
    tokens = ServiceTokens(cluster.signer, ServiceAccount("logs"), clock=cluster.clock)
    before = tokens()
    assert tokens() == before
    rotate(cluster.path)
    cluster.clock.advance(1)
    assert jwt.get_unverified_header(tokens())["kid"] == cluster.signer.key_id


@pytest.mark.parametrize("content", [b"", b"nothing", "RSA"])
def test_a_file_of_other_keys_is_refused_by_its_path(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "key.pem"
    load_or_create_key(path)
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(content if isinstance(content, bytes) else path.read_bytes() + other)
    with pytest.raises(TypeError, match=str(path)):
        KeyFile(path)()

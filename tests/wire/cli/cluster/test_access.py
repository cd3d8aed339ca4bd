"""Finding the cluster, being let in, and what happens when it is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.ports import free_port
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import Role, User


def test_without_a_cluster_it_says_how_to_get_one(resolute: CommandLine) -> None:
    outcome = resolute("e", "list")
    assert outcome.code == 1
    assert outcome.err == (
        "error: no cluster is known: none was started on this machine, no address is given, "
        "and RESOLUTE_MASTER is not set\n"
        "  `resolute up` starts one on this machine; -m HOST:PORT names another\n"
    )


def test_a_cluster_that_is_down_is_named_with_what_to_do(resolute: CommandLine) -> None:
    address = f"127.0.0.1:{free_port()}"
    outcome = resolute("-m", address, "e", "list")
    assert outcome.code == 1
    assert outcome.err.startswith(f"error: cannot reach {address} (nothing listens there); ")
    assert outcome.err.endswith("  check the address given with -m and that the cluster runs\n")


def test_an_embedded_cluster_that_died_is_to_be_started_again(home: Path, resolute: CommandLine) -> None:
    address = f"127.0.0.1:{free_port()}"
    endpoint = {"address": address, "token_path": str(home / "token"), "cluster_id": "", "pid": 1}
    (home / "endpoint.json").write_text(json.dumps(endpoint))
    outcome = resolute("e", "list")
    assert outcome.code == 1
    assert f"cannot reach {address}" in outcome.err
    assert "start it with `resolute up`" in outcome.err


def test_the_environment_names_the_cluster(
    cluster: ScriptedCluster, home: Path, resolute: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "endpoint.json").unlink()
    monkeypatch.setenv("DET_MASTER", f"http://{cluster.address}")
    assert resolute("e", "list").code == 0
    monkeypatch.setenv("RESOLUTE_MASTER", "127.0.0.1:1")
    assert resolute("e", "list").code == 1
    assert resolute("-m", cluster.address, "e", "list").code == 0


def foreign_token() -> str:
    signer = TokenSigner(Ed25519PrivateKey.generate(), cluster_id="another", clock=SYSTEM_CLOCK)
    return signer.user(User("mallory", Role.ADMIN), ttl=3600)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("rubbish", "error: the token is not valid ("),
        (foreign_token(), "error: the token was not issued by this cluster; log in here"),
        ("", "error: the call carries no token; log in by `resolute user login NAME`, or give"),
    ],
    ids=["wrong", "foreign", "missing"],
)
def test_a_bad_token_is_named_with_where_it_came_from(
    cluster: ScriptedCluster, home: Path, resolute: CommandLine, token: str, message: str
) -> None:
    (home / "token").write_text(token)
    outcome = resolute("e", "list")
    assert outcome.code == 1
    assert outcome.err.startswith(message)
    assert (f"{cluster.address} refused the token (from {home / 'token'})" in outcome.err) == bool(token)
    assert "`resolute user login NAME` signs in; or give a token of that cluster in" in outcome.err


def test_a_token_of_another_cluster_is_refused_by_its_audience(
    cluster: ScriptedCluster, resolute: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cluster.running is not None
    signer = cluster.running.signer
    other = TokenSigner(signer._keys()[0], cluster_id="another", clock=SYSTEM_CLOCK)
    monkeypatch.setenv("RESOLUTE_TOKEN", other.user(User("ada", Role.ADMIN), ttl=3600))
    outcome = resolute("e", "list")
    assert outcome.err.startswith("error: the token is for another cluster; log in here\n")
    assert "(from RESOLUTE_TOKEN); `resolute user login NAME` signs in" in outcome.err


def test_a_viewer_may_look_and_not_touch(
    cluster: ScriptedCluster, resolute: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.state.add_experiment()
    monkeypatch.setenv("RESOLUTE_TOKEN", cluster.token(role=Role.VIEWER, name="vic"))
    assert resolute("e", "list").code == 0
    outcome = resolute("e", "kill", "1")
    assert outcome.code == 1
    assert "user vic is a viewer in the cluster, and KillExperiment needs the role editor" in outcome.err


def test_an_embedded_clusters_token_is_not_shown_to_another_cluster(
    cluster: ScriptedCluster, home: Path, resolute: CommandLine
) -> None:
    endpoint = json.loads((home / "endpoint.json").read_text())
    (home / "endpoint.json").write_text(json.dumps({**endpoint, "address": "127.0.0.1:1"}))
    outcome = resolute("-m", cluster.address, "e", "list")
    assert outcome.err.startswith("error: the call carries no token")
    assert f"none was sent: {home / 'token'} is of the cluster at 127.0.0.1:1" in outcome.err


def test_calls_can_be_made_as_another_user(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    cluster.state.add_experiment()
    assert resolute("-u", "grace", "e", "pause", "1").code == 0
    assert cluster.state.callers == ["ada", "grace"]


def test_versions_of_client_and_cluster_are_told(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    assert f"cluster  9.9.9 at {cluster.address}" in resolute("version").out


def test_the_version_needs_no_cluster(resolute: CommandLine) -> None:
    outcome = resolute("version")
    assert outcome.code == 0
    assert outcome.out.startswith("client   0.")
    assert "cluster  not reached: no cluster is known" in outcome.out
    assert resolute("--version").out.startswith("resolute 0.")


def test_a_damaged_home_is_named(home: Path, resolute: CommandLine) -> None:
    (home / "endpoint.json").write_text("{")
    outcome = resolute("e", "list")
    assert outcome.code == 1
    assert f"{home / 'endpoint.json'} is damaged" in outcome.err


@pytest.mark.parametrize("address", ["host:port", ":8080", "http://"])
def test_what_is_no_address_is_refused(resolute: CommandLine, address: str) -> None:
    outcome = resolute("-m", address, "e", "list")
    assert outcome.code == 1
    assert "write HOST:PORT" in outcome.err

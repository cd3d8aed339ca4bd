"""Clusters by name, in a file of the home."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resolute.client.connection.contexts import ClusterContext, Contexts
from resolute.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError


@pytest.fixture
def contexts(tmp_path: Path) -> Contexts:
    return Contexts.of_home({"RESOLUTE_HOME": str(tmp_path)})


def test_contexts_are_kept_replaced_and_removed(contexts: Contexts, tmp_path: Path) -> None:
    contexts.set(ClusterContext(name="lab", server="lab:8080"))
    contexts.set(ClusterContext(name="a", server="a:1", user="ada"))
    contexts.set(ClusterContext(name="lab", server="lab:9090"))
    assert [(one.name, one.server, one.user) for one in contexts.all()] == [
        ("a", "a:1", "ada"),
        ("lab", "lab:9090", ""),
    ]
    contexts.delete("a")
    assert json.loads((tmp_path / "contexts.json").read_text()) == {"lab": {"server": "lab:9090"}}
    with pytest.raises(NotFoundError, match="the contexts are lab"):
        contexts.get("a")


def test_variables_that_name_another_cluster_or_token_have_no_effect(
    contexts: Contexts, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("right")
    contexts.set(ClusterContext(name="lab", server="127.0.0.1:9", token_file=str(tmp_path / "mine")))
    environment = {
        "RESOLUTE_MASTER": "elsewhere:1",
        "RESOLUTE_TOKEN": "wrong",
        "RESOLUTE_MASTER_CERT": str(tmp_path / "of-another-cluster.pem"),
        "DET_MASTER_CERT_NAME": "elsewhere",
        "RESOLUTE_HOME": str(tmp_path),
    }
    with contexts.get("lab").session(environment) as session:
        assert session.endpoint.address == "127.0.0.1:9"
        assert session.endpoint.token() == "right"


def test_contexts_that_are_set_at_once_are_all_kept(contexts: Contexts) -> None:
    names = [f"lab{number}" for number in range(16)]
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda name: contexts.set(ClusterContext(name=name, server="lab:1")), names))
    assert [one.name for one in contexts.all()] == sorted(names)


def test_wrong_contexts_are_refused(contexts: Contexts, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot name a context"):
        contexts.set(ClusterContext(name="-x", server="lab:1"))
    with pytest.raises(InvalidArgumentError, match="names no cluster"):
        contexts.set(ClusterContext(name="lab"))
    for damaged in ("[", "[]", '{"lab": 3}', '{"lab": {"color": "red"}}'):
        (tmp_path / "contexts.json").write_text(damaged)
        if damaged == "[]":
            assert contexts.all() == []
            continue
        with pytest.raises(FailedPreconditionError, match=r"contexts\.json"):
            contexts.all()

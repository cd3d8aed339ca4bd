"""Searches that others decide, on a whole cluster: by a program, by an experiment, by an installed plugin."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.searcher import (
    Close,
    Create,
    ExitedReason,
    LocalSearchRunner,
    Operation,
    SearcherState,
    SearchMethod,
    Shutdown,
    ValidateAfter,
)

SCRIPT = """
import time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    for op in core.searcher.operations():
        while info.trial.hparams["endless"] and not core.preempt.should_preempt():
            time.sleep(0.05)
        if not info.trial.hparams["endless"]:
            core.train.report_validation_metrics(steps_completed=op.length, metrics={"loss": 1 / op.length})
            op.report_completed(1 / op.length)
"""
METHOD = """
import sys
import determined as det
from resolute import searcher

sys.path.insert(0, "tests_method")
from method import TwoSteps

config = {
    "name": "driven-from-within",
    "entrypoint": "python3 train.py",
    "hyperparameters": {"endless": False},
    "searcher": {"name": "custom", "metric": "loss", "unit": "batches"},
}
with det.core.init() as core:
    print("drove", searcher.RemoteSearchRunner(TwoSteps(endless=False), core).run(config, "trial"))
"""
PLUGIN = """
from resolute_searcher.methods.full_length import FullLengthSearch
from resolute_searcher.methods.registry import MethodKind


def build(spec):
    settings = spec.method.settings
    return FullLengthSearch(
        max_length=settings["length"], max_trials=settings["trials"], max_concurrent_trials=1
    )


KIND = MethodKind("tiny", 1, build)
"""
SETUP = """
from setuptools import setup

setup(
    name="tiny-search-method",
    version="1.0",
    py_modules=["tiny_search"],
    entry_points={"resolute.search_methods": ["tiny = tiny_search:KIND"]},
)
"""


class TwoSteps(SearchMethod):
    """Trains one trial in two steps; with ``endless``, another that only the shutdown ends."""

    def __init__(self, *, endless: bool) -> None:
        self.first = uuid.UUID(int=1)
        self.endless = endless

    def initial_operations(self, searcher_state: SearcherState) -> list[Operation]:
        first: list[Operation] = [Create(self.first, {"endless": False}, None), ValidateAfter(self.first, 4)]
        if not self.endless:
            return first
        other = uuid.UUID(int=2)
        return [Create(other, {"endless": True}, None), ValidateAfter(other, 4), *first]

    def on_trial_created(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        return []

    def on_validation_completed(
        self, searcher_state: SearcherState, request_id: uuid.UUID, metric: Any, train_length: int
    ) -> list[Operation]:
        return [ValidateAfter(request_id, 8)] if train_length == 4 else [Close(request_id)]

    def on_trial_closed(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        return [Shutdown()]

    def progress(self, searcher_state: SearcherState) -> float:
        return 0.5

    def on_trial_exited_early(
        self, searcher_state: SearcherState, request_id: uuid.UUID, exited_reason: ExitedReason
    ) -> list[Operation]:
        return []


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a distribution that brings a search method was installed."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    (source / "setup.py").write_text(SETUP)
    (source / "tiny_search.py").write_text(PLUGIN)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--no-index", "--target", str(target), str(source)], check=True, timeout=120)
    return target


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, plugin: Path) -> Iterator[EmbeddedCluster]:
    with embedded(tmp_path_factory.mktemp("home") / "h", PYTHONPATH=str(plugin)) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    return folder


def trials(cluster: EmbeddedCluster, experiment: str) -> list[tuple[str, Any]]:
    found = cluster.json("e", "list-trials", experiment)
    return [(trial["state"], trial["hparams"]) for trial in found]


@pytest.mark.sampled(1, group="custom searches on a cluster")
def test_a_plugin_that_is_installed_decides(cluster: EmbeddedCluster, project: Path) -> None:
    (project / "plugin.yaml").write_text(
        "{name: plugged, entrypoint: python3 train.py, hyperparameters: {endless: false},"
        " searcher: {name: plugin, method: tiny, metric: loss, settings: {trials: 2, length: 3}}}"
    )
    created = cluster.det("e", "create", "plugin.yaml", ".", cwd=project).stdout.split()[-1]
    assert cluster.det("e", "wait", created, timeout=120).returncode == 0
    assert trials(cluster, created) == [("COMPLETED", {"endless": False})] * 2


@pytest.mark.sampled(1, group="custom searches on a cluster")
@pytest.mark.parametrize(
    ("method", "refusal"),
    [
        (
            "tiny, settings: {trials: 2}",
            "searcher.method: the search method 'tiny' cannot be made for this config",
        ),
        ("nobodys", "searcher.method: no search method 'nobodys' is installed here"),
    ],
)
def test_a_plugin_that_cannot_be_made_is_refused_at_submission(
    cluster: EmbeddedCluster, project: Path, method: str, refusal: str
) -> None:
    (project / "plugin.yaml").write_text(
        "{name: plugged, entrypoint: python3 train.py, hyperparameters: {endless: false},"
        f" searcher: {{name: plugin, metric: loss, method: {method}}}}}"
    )
    before = len(cluster.json("e", "list"))
    refused = cluster.det("e", "create", "plugin.yaml", ".", cwd=project, check=False)
    assert refused.returncode == 1
    assert refusal in refused.stderr
    assert ("KeyError: 'length'" in refused.stderr) == ("tiny" in method)
    assert len(cluster.json("e", "list")) == before


@pytest.mark.sampled(1, group="custom searches on a cluster")
def test_a_program_decides_and_its_shutdown_ends_what_it_left_open(
    cluster: EmbeddedCluster, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.name_in(monkeypatch)
    config = {
        "name": "driven",
        "entrypoint": "python3 train.py",
        "hyperparameters": {"endless": False},
        "searcher": {"name": "custom", "metric": "loss", "unit": "batches"},
    }
    runner = LocalSearchRunner(TwoSteps(endless=True), tmp_path / "searcher")
    driven = str(runner.run(config, project))
    assert cluster.det("e", "wait", driven, timeout=120).returncode == 0
    assert sorted(state for state, _ in trials(cluster, driven)) == ["CANCELED", "COMPLETED"]
    assert cluster.json("e", "describe", driven)[0]["experiment"]["state"] == "COMPLETED"


@pytest.mark.sampled(1, group="custom searches on a cluster")
def test_an_experiment_decides_for_another(cluster: EmbeddedCluster, project: Path, tmp_path: Path) -> None:
    leader = tmp_path / "leader"
    (leader / "tests_method").mkdir(parents=True)
    (leader / "trial").mkdir()
    (leader / "trial" / "train.py").write_text(SCRIPT)
    (leader / "lead.py").write_text(METHOD)
    own = Path(__file__).read_text()
    imports = own[own.index("import uuid") : own.index("import pytest")]
    named = own[own.index("from resolute.searcher") : own.index("SCRIPT =")]
    method = own[own.index("class TwoSteps") : own.index("@pytest.fixture")]
    (leader / "tests_method" / "method.py").write_text(f"{imports}\n{named}\n{method}")
    # It submits for its owner, by the token of the SDK in its run: it is told of no home.
    (leader / "leader.yaml").write_text(
        "{name: leader, entrypoint: python3 lead.py, searcher: {name: single, metric: loss},"
        " environment: {environment_variables: [RESOLUTE_HOME=/nowhere]}}"
    )
    created = cluster.det("e", "create", "leader.yaml", ".", cwd=leader).stdout.split()[-1]
    assert cluster.det("e", "wait", created, timeout=120, check=False).returncode == 0, cluster.det(
        "e", "logs", created
    ).stdout[-3000:]
    driven = str(int(created) + 1)
    assert cluster.json("e", "describe", driven)[0]["experiment"]["name"] == "driven-from-within"
    assert cluster.det("e", "wait", driven, timeout=60).returncode == 0
    assert trials(cluster, driven) == [("COMPLETED", {"endless": False})]

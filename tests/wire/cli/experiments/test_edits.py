"""``experiment set`` and ``experiment label`` change what people write of an experiment."""

from __future__ import annotations

from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.errors import ConflictError


def test_name_and_description_are_set(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    experiment = cluster.state.add_experiment(description="before")
    assert "is called digits 2" in resolute("e", "set", "name", "1", "digits 2").out
    assert (experiment.name, experiment.description) == ("digits 2", "before")
    resolute("e", "set", "description", "1", "")
    assert (experiment.name, experiment.description) == ("digits 2", "")


def test_labels_are_added_once_and_removed(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    experiment = cluster.state.add_experiment(labels=["mnist"])
    for _ in range(2):
        resolute("e", "label", "add", "1", "fast")
    assert list(experiment.labels) == ["mnist", "fast"]
    assert "has the labels: fast" in resolute("e", "label", "remove", "1", "mnist").out
    assert "has the labels: none" in resolute("e", "label", "remove", "1", "fast").out


def test_labels_are_read_again_when_somebody_else_changed_them(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    experiment = cluster.state.add_experiment(labels=["mnist"])
    cluster.state.faults["UpdateExperiment"] = [ConflictError("changed meanwhile"), None]
    resolute("e", "label", "add", "1", "fast")
    assert list(experiment.labels) == ["mnist", "fast"]

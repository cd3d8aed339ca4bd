"""What a shell completes of what the cluster has, and of the config that the command line names."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from wire.cli.scripted import ScriptedCluster

from resolute.cli.main import cli
from resolute.cli.options import completions


def completed(line: str) -> list[str]:
    *words, incomplete = line.split(" ")
    found = ShellComplete(cli, {}, "resolute", "_RESOLUTE_COMPLETE").get_completions(words, incomplete)
    return [one.value for one in found]


CONFIG = "name: mine\nsearcher:\n  name: single\n  max_length: {batches: 5}\n"


def test_numbers_and_names_of_the_cluster_are_offered(cluster: ScriptedCluster) -> None:
    experiment = cluster.state.add_experiment(name="first")
    trial = cluster.state.add_trial(experiment)
    number, other = str(experiment.number), str(cluster.state.add_experiment(name="second").number)
    assert set(completed("experiment describe ")) >= {number, other}
    assert f"{number},{other}" in completed(f"e pause {number},{other[:1]}")
    assert str(trial.number) in completed("trial logs ")
    assert completed("experiment describe zzz") == []
    assert completed("project describe ") == completed("workspace describe ")


@pytest.mark.usefixtures("cluster")
def test_what_begins_so_is_offered_wherever_it_stands_in_a_long_list() -> None:
    complete = completions._from_cluster(lambda _: ((f"name-{number}", "") for number in range(200)))
    context = cli.make_context("resolute", ["status"], resilient_parsing=True)
    parameter = cli.params[0]
    assert [one.value for one in complete(context, parameter, "name-199")] == ["name-199"]
    assert len(complete(context, parameter, "name")) == 50


def test_fields_of_the_config_are_offered_with_what_they_are(home: Path) -> None:
    (home.parent / "config.yaml").write_text(CONFIG)
    assert completed("experiment create config.yaml . --config searcher.") == [
        "searcher.name=",
        "searcher.max_length.batches=",
    ]
    assert completed("experiment create nothere.yaml . --config se") == []


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("line", ["experiment describe ", "model describe ", "-m nowhere:xx user activate "])
def test_without_a_cluster_nothing_is_offered_and_nothing_is_said(
    line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert completed(line) == []
    assert capfd.readouterr() == ("", "")

"""Commands tell of what keeps the cluster from working, beside what they were asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from support.clocks import ManualClock
from wire.cli.conftest import CommandLine
from wire.cli.experiments.test_follow import COMPLETED, after_submission, ended, one_trial
from wire.cli.scripted import ScriptedCluster

from resolute.cli.display.problems import ProblemWatch
from resolute.client import Client

PROBLEM = "the disk of /data is full (0.1 MB free): free some space there"


def test_descriptions_warn_of_problems(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    cluster.state.problems = [PROBLEM]
    cluster.state.add_trial(cluster.state.add_experiment())
    for noun in ("e", "t"):
        outcome = resolute(noun, "describe", "1", "--json")
        assert outcome.err == f"warning: {PROBLEM}\n"
        assert json.loads(outcome.out)


def test_following_warns_of_problems(
    cluster: ScriptedCluster,
    resolute: CommandLine,
    code: Path,
    later: Callable[[Callable[[], object]], None],
) -> None:
    cluster.state.problems = [PROBLEM]
    later(after_submission(cluster, one_trial, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    assert f"warning: {PROBLEM}" in outcome.out.splitlines()


def test_problems_are_told_when_they_come_and_when_they_are_over(cluster: ScriptedCluster) -> None:
    shown: list[str] = []
    clock = ManualClock()
    with Client() as client:
        watch = ProblemWatch(client.services, show=shown.append, clock=clock)
        for problems in ([], [PROBLEM], [PROBLEM.replace("0.1", "0.0")], []):
            cluster.state.problems = list(problems)
            watch.look()
            clock.advance(4)
    assert shown == [f"warning: {PROBLEM}", "the cluster works again: its problems are over"]

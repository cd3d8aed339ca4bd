"""Logs by the command line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster
from wire.cli.scripted_state import State

from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.api.logs.v1 import line_pb2
from resolute.errors import UnavailableError

Later = Callable[[Callable[[], object]], None]


def trial_with_lines(cluster: ScriptedCluster, count: int = 7) -> trial_pb2.Trial:
    trial = cluster.state.add_trial(cluster.state.add_experiment())
    for number in range(count):
        level = line_pb2.LEVEL_ERROR if number == 3 else line_pb2.LEVEL_INFO
        cluster.state.add_line(
            trial,
            f"line {number}",
            rank=number % 2,
            stdtype="stdout",
            level=level,
            origin="task",
            container="left" if number < 5 else "right",
            agent="node-1" if number < 6 else "node-2",
        )
    return trial


def messages(text: str) -> list[str]:
    return [line.split("] ")[-1] for line in text.splitlines()]


def test_logs_show_time_and_rank(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trial_with_lines(cluster)
    first = resolute("t", "logs", "1").out.splitlines()[0]
    assert first.endswith(" [rank=0] line 0")
    assert first.startswith("[2023-11-1")


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ((), range(7)),
        (("--head", "2"), (0, 1)),
        (("--tail", "4"), (3, 4, 5, 6)),
        (("--tail", "0"), ()),
        (("--rank-id", "1"), (1, 3, 5)),
        (("--level", "error"), (3,)),
        (("--search", "LINE 5"), (5,)),
        (("--timestamp-after", "2023-11-14T22:13:25Z"), (5, 6)),
        (("--stdtype", "stderr"), ()),
        (("--stdtype", "stdout", "--stdtype", "stderr"), range(7)),
        (("--timestamp-before", "2023-11-14T22:13:25Z"), range(5)),
        (("--source", "task"), range(7)),
        (("--source", "supervisor"), ()),
        (("--container-id", "right"), (5, 6)),
        (("--agent-id", "node-2"), (6,)),
        (("--agent-id", "node-1", "--agent-id", "node-2"), range(7)),
        (("--agent-id", "node-1", "--container-id", "right"), (5,)),
        (("--agent-id", "elsewhere"), ()),
        (("--regex", "[24]$"), (2, 4)),
        (("--run", "2"), ()),
        (("--rank-id", "0", "--regex", "[3-6]", "--container-id", "left"), (4,)),
    ],
)
def test_logs_are_filtered(
    cluster: ScriptedCluster,
    resolute: CommandLine,
    options: tuple[str, ...],
    numbers: range | tuple[int, ...],
) -> None:
    trial_with_lines(cluster)
    outcome = resolute("t", "logs", "1", *options)
    assert messages(outcome.out) == [f"line {number}" for number in numbers]
    assert outcome.code == 0


def test_logs_of_an_experiment_are_its_first_trials(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trial = trial_with_lines(cluster, 1)
    other = cluster.state.add_trial(cluster.state.experiments[0])
    cluster.state.add_line(other, "from the second trial")
    assert messages(resolute("e", "logs", "1").out) == ["line 0"]
    as_json = json.loads(resolute("e", "logs", "1", "--json").out)
    assert as_json["trial_uuid"] == trial.trial_id
    assert as_json["level"] == "INFO"


def test_an_allocation_stands_for_its_run(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trial = trial_with_lines(cluster, 2)
    trial.runs.add(run=1, allocation_id="first")
    trial.runs.add(run=2, allocation_id="second")
    assert messages(resolute("t", "logs", "1", "--allocation-id", "first").out) == ["line 0", "line 1"]
    assert resolute("t", "logs", "1", "--allocation-id", "second").out == ""
    assert resolute("t", "logs", "1", "--allocation-id", "x").err == "error: trial 1 has no allocation x\n"


def test_an_empty_log_says_why_it_is(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trial = trial_with_lines(cluster, 0)
    waiting = resolute("t", "logs", "1")
    assert (waiting.out, waiting.code) == ("", 0)
    assert waiting.err == "trial 1 has printed nothing yet; --follow waits for it\n"
    trial.state = trial_pb2.TRIAL_STATE_COMPLETED
    assert "trial 1 printed nothing; what it reported: " in resolute("t", "logs", "1").err
    assert resolute("t", "logs", "1", "--tail", "0").err == ""
    cluster.state.add_line(trial, "a line")
    assert resolute("t", "logs", "1").err == ""
    assert resolute("t", "logs", "1", "--search", "x").err == "no line of trial 1 matches the options\n"


def test_an_experiment_without_trials_has_no_logs_yet(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    cluster.state.add_experiment()
    outcome = resolute("e", "logs", "1")
    assert outcome.code == 1
    assert outcome.err == "error: experiment 1 has no trial yet; wait for it with --follow\n"


def test_following_shows_later_lines_and_ends_with_the_trial(
    cluster: ScriptedCluster, resolute: CommandLine, later: Later
) -> None:
    experiment = cluster.state.add_experiment()

    def train(state: State) -> None:
        trial = state.add_trial(experiment)
        state.add_line(trial, "born late")

    def finish(state: State) -> None:
        state.add_line(state.trials[0], "last words")
        state.end(experiment, experiment_pb2.EXPERIMENT_STATE_COMPLETED)

    def work() -> None:
        cluster.change(train)
        cluster.change(finish)

    later(work)
    outcome = resolute("e", "logs", "-f", "1")
    assert messages(outcome.out) == ["born late", "last words"]


def test_following_goes_on_after_a_broken_connection_without_repeating_a_line(
    cluster: ScriptedCluster, resolute: CommandLine, later: Later
) -> None:
    trial_with_lines(cluster, 3)
    faults = cluster.state.faults
    faults["FollowLines midway"] = [UnavailableError("stopping")]
    # The channel itself repeats a call three times; the follower must live through more than that.
    faults["FollowLines"] = [None, *[UnavailableError("starting") for _ in range(5)]]

    def finish(state: State) -> bool:
        over = not state.faults["FollowLines"]
        if over:
            state.add_line(state.trials[0], "last words")
            state.end(state.experiments[0], experiment_pb2.EXPERIMENT_STATE_COMPLETED)
        return over

    def work() -> None:
        while not cluster.change(finish):
            pass

    later(work)
    outcome = resolute("t", "logs", "-f", "1")
    assert messages(outcome.out) == ["line 0", "line 1", "line 2", "last words"]
    assert outcome.code == 0


def test_a_log_that_a_stopping_service_ends_is_followed_on(
    cluster: ScriptedCluster, resolute: CommandLine, later: Later
) -> None:
    trial = trial_with_lines(cluster, 1)
    cluster.state.closed_logs.add(trial.trial_id)

    def finish(state: State) -> bool:
        over = state.callers.count("ada") > 3
        if over:
            state.add_line(state.trials[0], "last words")
            state.end(state.experiments[0], experiment_pb2.EXPERIMENT_STATE_COMPLETED)
        return over

    def work() -> None:
        while not cluster.change(finish):
            pass

    later(work)
    assert messages(resolute("t", "logs", "-f", "1").out) == ["line 0", "last words"]


def test_a_tail_can_be_followed(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    trial_with_lines(cluster, 5)
    cluster.change(lambda state: state.end(state.experiments[0], experiment_pb2.EXPERIMENT_STATE_COMPLETED))
    assert messages(resolute("t", "logs", "1", "--tail", "2", "-f").out) == ["line 3", "line 4"]


@pytest.mark.parametrize("options", [("--head", "1", "--tail", "1"), ("--head", "1", "-f")])
def test_head_excludes_tail_and_follow(resolute: CommandLine, options: tuple[str, ...]) -> None:
    outcome = resolute("t", "logs", "1", *options)
    assert outcome.code == 2
    assert "--head cannot be combined with --tail or --follow." in outcome.err


def test_the_log_of_the_server_is_printed_and_followed(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    del cluster
    assert resolute("master", "logs", "--tail", "1").out == "second\n"
    assert resolute("master", "logs", "-f").out == "first\nsecond\nthird\n"

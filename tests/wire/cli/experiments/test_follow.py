"""Following an experiment from its submission to its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster
from wire.cli.scripted_state import State

from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.api.metrics.v1 import summary_pb2, validation_pb2
from resolute.errors import InternalError, UnavailableError

Later = Callable[[Callable[[], object]], None]
COMPLETED = experiment_pb2.EXPERIMENT_STATE_COMPLETED


def after_submission(cluster: ScriptedCluster, *steps: Callable[[State], object]) -> Callable[[], None]:
    """Work that changes the state step by step once an experiment is there."""

    def work() -> None:
        while not cluster.change(lambda state: len(state.experiments)):
            pass
        for step in steps:
            cluster.change(step)

    return work


def one_trial(state: State) -> None:
    trial = state.add_trial(state.experiments[0])
    state.add_line(trial, "epoch 1", rank=0)


def ended(how: int, failure: str = "") -> Callable[[State], None]:
    return lambda state: state.end(state.experiments[0], how, failure=failure)


def test_the_first_trials_log_is_shown_until_the_end(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    later(after_submission(cluster, one_trial, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "Created experiment 1"
    assert lines[1] == "following trial 1"
    assert lines[2].endswith("[rank=0] epoch 1")
    assert lines[3:] == ["experiment 1 COMPLETED"]
    assert outcome.err.startswith("experiment 1 ")


def test_frames_of_libraries_are_folded_for_each_rank_while_the_log_is_followed(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    library = '  File "/venv/lib/python3.11/site-packages/torch/nn/module.py", line 1, in _call'

    def fail(state: State) -> None:
        trial = state.add_trial(state.experiments[0])
        for text, rank in (
            ("Traceback (most recent call last):", 0),
            ('  File "/run/train.py", line 9, in <module>', 0),
            ("    main()", 0),
            (library, 0),
            ("epoch 1", 1),
            ("    return forward()", 0),
            (library, 0),
            ("ValueError: no such layer", 0),
            (library, 1),
        ):
            state.add_line(trial, text, rank=rank)

    later(after_submission(cluster, fail, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    shown = [line.partition("] ")[2] for line in outcome.out.splitlines()[2:-1]]
    assert shown == [
        "[rank=0] Traceback (most recent call last):",
        '[rank=0]   File "/run/train.py", line 9, in <module>',
        "[rank=0]     main()",
        "[rank=1] epoch 1",
        "[rank=0]   … 2 frames of torch",
        "[rank=0] ValueError: no such layer",
        "[rank=1]   … 1 frame of torch",
    ]
    whole = resolute("trial", "logs", "1").out
    assert whole.count("site-packages") == 3


def test_a_search_that_was_paused_with_a_warning_is_not_waited_for(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    def pause(state: State) -> None:
        experiment = state.experiments[0]
        experiment.state = experiment_pb2.EXPERIMENT_STATE_PAUSED
        experiment.warning = "no trial has reported searcher.metric 'loss'; paused for that"
        experiment.revision += 1

    later(after_submission(cluster, one_trial, pause))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    assert outcome.code == 1
    said = ["experiment 1 PAUSED", "warning: no trial has reported searcher.metric 'loss'; paused for that"]
    assert outcome.out.splitlines()[-2:] == said
    assert outcome.out.count("warning:") == 1
    waited = resolute("e", "wait", "1")
    assert (waited.code, waited.out.splitlines(), waited.err) == (1, said, "")


def test_a_warning_is_shown_when_it_comes_and_at_the_end(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    def warn(state: State) -> None:
        state.experiments[0].warning = "no trial has reported searcher.metric 'loss'"

    later(after_submission(cluster, one_trial, warn, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    lines = outcome.out.splitlines()
    assert lines[-2:] == ["experiment 1 COMPLETED", "warning: no trial has reported searcher.metric 'loss'"]
    assert outcome.code == 1, "it is no success"


@pytest.mark.parametrize(
    ("state", "failure", "last"),
    [
        (experiment_pb2.EXPERIMENT_STATE_ERROR, "all trials failed", "experiment 1 ERROR: all trials failed"),
        (experiment_pb2.EXPERIMENT_STATE_CANCELED, "", "experiment 1 CANCELED"),
    ],
)
def test_an_experiment_that_does_not_complete_is_a_failure(
    cluster: ScriptedCluster,
    resolute: CommandLine,
    code: Path,
    later: Later,
    state: int,
    failure: str,
    last: str,
) -> None:
    later(after_submission(cluster, one_trial, ended(state, failure)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    assert outcome.code == 1
    assert outcome.out.splitlines()[-1] == last


def test_a_search_ends_with_its_best_trial(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    def several(state: State) -> None:
        state.experiments[0].searcher_name = "random"
        for number, value in enumerate((0.7, 0.9, 0.8)):
            trial = state.add_trial(state.experiments[0], hparams={"lr": 10.0**-number})
            state.bests.append(
                validation_pb2.BestValidation(
                    trial_id=trial.trial_id, metric="accuracy", value=value, steps=5
                )
            )

    later(after_submission(cluster, several, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    assert outcome.out.splitlines()[-1] == "best trial 2: accuracy 0.9 at step 5 with lr=0.1"


def test_trials_that_end_are_told_with_their_last_best_and_not_with_the_copy_that_came(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    def train(state: State) -> None:
        state.experiments[0].searcher_name = "random"
        for value in (0.7, 0.9):
            trial = state.add_trial(state.experiments[0])
            trial.best_validation.CopyFrom(trial_pb2.Validation(value=0.1, steps=1))
            state.bests.append(
                validation_pb2.BestValidation(
                    trial_id=trial.trial_id, metric="accuracy", value=value, steps=5
                )
            )
        state.add_trial(state.experiments[0])

    later(after_submission(cluster, train, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    told = [line for line in outcome.out.splitlines() if line.startswith("trial ")]
    assert told == [
        "trial 1 COMPLETED: best accuracy 0.7 at step 5",
        "trial 2 COMPLETED: best accuracy 0.9 at step 5",
        "trial 3 COMPLETED",
    ]


@pytest.mark.parametrize("reports", [True, False])
def test_a_single_training_says_its_best_value_or_that_it_reported_none_and_is_a_success(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later, reports: bool
) -> None:
    def train(state: State) -> None:
        experiment = state.experiments[0]
        experiment.kind = experiment_pb2.EXPERIMENT_KIND_SEARCH
        experiment.searcher_metric = "accuracy"
        trial = state.add_trial(experiment)
        if reports:
            best = validation_pb2.BestValidation(
                trial_id=trial.trial_id, metric="accuracy", value=0.9, steps=5
            )
            state.bests.append(best)

    later(after_submission(cluster, train, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    none = (
        "no validation reported a finite number for searcher.metric 'accuracy': "
        "the script exited with 0, and no checkpoint is the best"
    )
    said = "best accuracy 0.9 at step 5" if reports else none
    assert (outcome.code, outcome.out.splitlines()[-1]) == (0, said)
    waited = resolute("e", "wait", "1")
    assert waited.code == 0
    assert (none in waited.out) is not reports


def test_a_search_with_no_finite_value_of_its_metric_is_no_success(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    def train(state: State) -> None:
        experiment = state.experiments[0]
        experiment.kind = experiment_pb2.EXPERIMENT_KIND_SEARCH
        experiment.searcher_metric, experiment.searcher_name = "accuracy", "random"
        trial = state.add_trial(experiment)
        state.summaries.append(
            summary_pb2.Summary(
                trial_id=trial.trial_id, group="validation", name="accuracy", nonfinite_count=1
            )
        )

    later(after_submission(cluster, train, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    assert "no validation reported a finite number" in outcome.out.splitlines()[-1]
    assert outcome.code == 1
    assert resolute("e", "wait", "1").code == 1


def test_a_test_is_followed_without_being_asked(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    later(after_submission(cluster, one_trial, ended(experiment_pb2.EXPERIMENT_STATE_ERROR)))
    assert resolute("e", "create", str(code / "const.yaml"), str(code), "-t").code == 1
    assert cluster.state.specs[0].test_mode


def test_an_experiment_is_followed_through_a_restart_of_its_cluster(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    cluster.state.faults["WatchExperiments midway"] = [UnavailableError("stopping")]
    cluster.state.faults["WatchExperiments"] = [None, *[UnavailableError("starting") for _ in range(5)]]
    later(after_submission(cluster, one_trial, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("epoch 1") == 1


def test_an_experiment_is_followed_without_its_log_if_need_be(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, later: Later
) -> None:
    cluster.state.faults["FollowLines"] = [InternalError("no disk")]
    later(after_submission(cluster, one_trial, ended(COMPLETED)))
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code), "-f")
    assert outcome.code == 0
    assert "warning: the log cannot be followed: no disk" in outcome.err


def test_ctrl_c_detaches_and_says_how_to_go_on(
    cluster: ScriptedCluster, home: Path, code: Path, later: Later
) -> None:
    environment = {**os.environ, "RESOLUTE_HOME": str(home)}
    # A job in the background ignores Ctrl-C, and its children inherit that.
    python = ["env", "--default-signal=INT", sys.executable]
    command = [*python, "-c", "from resolute.cli.main import main; main()", "e", "create"]
    process = subprocess.Popen(
        [*command, str(code / "const.yaml"), str(code), "-f"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        try:
            assert process.stdout.readline() == "Created experiment 1\n"
            cluster.change(one_trial)
            assert process.stdout.readline() == "following trial 1\n"
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=60)[1]
            assert process.returncode == 130, errors
        finally:
            process.kill()
    assert "detached; experiment 1 goes on. To follow it again: resolute e logs -f 1" in errors
    assert cluster.state.experiments[0].state == experiment_pb2.EXPERIMENT_STATE_ACTIVE


def test_progress_for_programs_is_readable_from_the_list(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    cluster.state.add_experiment(progress=0.5, activity=experiment_pb2.EXPERIMENT_ACTIVITY_RUNNING)
    assert json.loads(resolute("e", "list", "--json").out)[0]["progress"] == 0.5

"""What the ten most used commands show on terminals of 80 and 120 columns, compared with committed screens.

``RESOLUTE_WRITE_SCREENS=1`` writes the screens instead; read what changed before it is committed.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.clocks import ManualClock
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import (
    cluster_service_pb2,
    experiment_pb2,
    job_pb2,
    run_pb2,
    trial_pb2,
)
from resolute.api.metrics.v1 import summary_pb2, validation_pb2
from resolute.cli.display import output
from resolute.cli.main import run

SCREENS = Path(__file__).parent / "screens"
WRITE = bool(os.environ.get("RESOLUTE_WRITE_SCREENS"))
NOW = 1_700_000_000 + 3 * 3600
FAILURE = "ValueError: operands could not be broadcast together with shapes (64,784) (10,784)"
COMMANDS = {
    "experiment-list": ("experiment", "list"),
    "experiment-describe": ("experiment", "describe", "2"),
    "experiment-list-trials": ("experiment", "list-trials", "2"),
    "experiment-list-checkpoints": ("experiment", "list-checkpoints", "2"),
    "trial-describe": ("trial", "describe", "6", "--metrics-summary"),
    "trial-logs": ("trial", "logs", "2"),
    "job-list": ("job", "list"),
    "slot-list": ("slot", "list"),
    "preview-search": ("preview-search", "code/const.yaml"),
    "trial-list": ("trial", "list", "2"),
}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def utc() -> Iterator[None]:
    """Times of the day are those of UTC."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def day(cluster: ScriptedCluster, utc: None, monkeypatch: pytest.MonkeyPatch) -> ScriptedCluster:
    """A cluster in the middle of a day's work, at a fixed time."""
    del utc
    monkeypatch.setattr(output, "SYSTEM_CLOCK", ManualClock(NOW))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    state = cluster.state
    done = state.add_experiment(
        name="digits", state=experiment_pb2.EXPERIMENT_STATE_COMPLETED, progress=1.0, labels=["baseline"]
    )
    done.end_time.FromSeconds(NOW - 7200)
    first = state.add_trial(done, state=trial_pb2.TRIAL_STATE_COMPLETED)
    search = state.add_experiment(
        name="a wider network with dropout and a cosine schedule",
        activity=experiment_pb2.EXPERIMENT_ACTIVITY_RUNNING,
        searcher_name="adaptive_asha",
        progress=0.4,
        labels=["mnist", "night"],
    )
    trials = [
        state.add_trial(search, hparams={"lr": 10.0**-n, "dropout": 0.1 * n, "net": {"width": 64 * 2**n}})
        for n in range(4)
    ]
    failed = run_pb2.Run(run=1, outcome=run_pb2.RUN_OUTCOME_FAILED, exit_code=1, failure=FAILURE)
    failed.start_time.FromSeconds(NOW - 600)
    failed.end_time.FromSeconds(NOW - 540)
    state.add_trial(
        search, state=trial_pb2.TRIAL_STATE_ERROR, runs=[failed], explanation=f"its run 1 failed: {FAILURE}"
    )
    for trial in state.trials:
        trial.create_time.FromSeconds(NOW - 3600)
    search.estimated_end_time.FromSeconds(NOW + 2700)
    running = trials[0]
    running.reported_steps, running.steps_per_second = 1840, 12.3456
    running.report_time.FromSeconds(NOW - 4)
    running.estimated_end_time.FromSeconds(NOW + 260)
    running.run_start_time.FromSeconds(NOW - 150)
    failed_trial = state.trials[5]
    failed_trial.run_seconds = 60
    for trial, value in zip((first, *trials), (0.97, 0.5, 0.912345678, 0.7), strict=False):
        state.bests.append(
            validation_pb2.BestValidation(trial_id=trial.trial_id, metric="accuracy", value=value, steps=10)
        )
        made = state.add_checkpoint(trial, {"model.pt": b"x" * 2000}, steps=10)
        made.commit_time.FromSeconds(NOW - 1800)
    state.summaries.append(
        summary_pb2.Summary(
            trial_id=state.trials[5].trial_id, group="training", name="loss", count=400, sum=200.0, min=0.25,
            max=2.5, last_number=0.3,
        )
    )  # fmt: skip
    for text in ("epoch 1: loss 0.52", "epoch 2: loss 0.31", f"\x1b[31m{'a long line of a library ' * 6}"):
        state.add_line(trials[0], text, stdtype="stdout")
    state.jobs.append(
        job_pb2.Job(
            experiment_id=search.experiment_id, experiment_number=2, name=search.name, state=search.state,
            priority=42, weight=1.0, slots_per_trial=1, held_slots=3, queued_trials=1, allocated_trials=3,
            progress=0.4, estimated_end_time=search.estimated_end_time,
        )
    )  # fmt: skip
    for number in range(2):
        state.slots.append(cluster_service_pb2.Slot(slot_id=number, kind=cluster_service_pb2.SLOT_KIND_GPU))
    return cluster


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_screen_is_as_it_was_committed(
    day: ScriptedCluster, code: Path, monkeypatch: pytest.MonkeyPatch, name: str, width: int
) -> None:
    del day, code
    monkeypatch.setenv("COLUMNS", str(width))
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert run(list(COMMANDS[name]), program="resolute") == 0
    # Without styles and padding, so that a screen can be read where it is committed.
    text = "".join(f"{line.rstrip()}\n" for line in click.unstyle(terminal.getvalue()).splitlines())
    kept = SCREENS / f"{name}-{width}.txt"
    if WRITE:
        SCREENS.mkdir(exist_ok=True)
        kept.write_text(text)
    assert text == kept.read_text()

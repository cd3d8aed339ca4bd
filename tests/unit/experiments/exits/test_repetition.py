"""Which failures would come again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from resolute.trials.search_metric import SearcherMetric
from resolute_experiments.exits.policy import Exit
from resolute_experiments.exits.repetition import Failure, why_not_again
from resolute_experiments.states import RunOutcome
from resolute_experiments.store.runs import Run

TRACEBACK = """the entrypoint ended with exit code 1
Traceback (most recent call last):
  File "/home/runs/1.{run}/train.py", line 9, in <module>
    step()
{error}"""
NEVER_MENDED = {
    "ModuleNotFoundError: No module named 'timn'": True,
    "ImportError: cannot import name 'Modle' from 'model'": True,
    "SyntaxError: invalid syntax": True,
    "NameError: name 'mdoel' is not defined": True,
    "python3: can't open file '/home/runs/1.1/tain.py': [Errno 2] No such file or directory": True,
    "bash: line 1: pyton3: command not found": True,
    "train.py: error: unrecognized arguments: --epoch": True,
    "/usr/bin/python3: No module named tain": True,
    "ValueError: bad value": False,
    "ConnectionRefusedError: [Errno 111] Connection refused": False,
    "RuntimeError: NCCL error: unhandled system error": False,
    "ImportError: HTTP Error 503: Service Unavailable": False,
    "Killed": False,
}


def run_that_failed(run: int, error: str, *, steps: int | None = 0, **changes: Any) -> Run:
    made = Run(
        trial_id="trial",
        run=run,
        allocation_id=f"trial.{run}",
        experiment_id="experiment",
        outcome=RunOutcome.FAILED,
        exit_code=1,
        failure=TRACEBACK.format(run=run, error=error),
        slot_ids=(0,),
        started_at=0.0,
        ended_at=1.0,
        trace_id="",
        signal_revision=0,
        preempt=False,
        kill=False,
        signal_reason="",
        signal_deadline=None,
        acknowledged=False,
        log_policies=(),
        preemption_timeout=None,
        request_id=None,
        kept_steps=None if steps is None else steps // 2,
        lost_steps=None if steps is None else steps - steps // 2,
    )
    return replace(made, **changes)


def judged(error: str, *earlier: Run, steps: int | None = 0, exit_: Exit | None = None) -> str:
    run = len(earlier) + 1
    now = Failure(run=run, text=TRACEBACK.format(run=run, error=error), steps=steps)
    return why_not_again(now, exit_ or Exit(exit_code=1), earlier=earlier)


@pytest.mark.parametrize("error", NEVER_MENDED)
def test_what_only_a_change_mends_is_not_repeated_before_the_first_report(error: str) -> None:
    assert bool(judged(error)) is NEVER_MENDED[error]
    assert judged(error, steps=3) == ""
    assert judged(error, steps=None) == ""
    assert judged(error, run_that_failed(1, "ValueError: another", steps=7)) == "", "it ran there"


def test_a_trial_whose_validation_has_not_the_metric_is_not_repeated() -> None:
    metric = SearcherMetric("val_loss", smaller_is_better=True)
    with pytest.raises(RuntimeError) as raised:
        metric.pick({"validation_loss": 0.5})
    assert judged(f"RuntimeError: {raised.value}", steps=16).startswith("not repeated: validations give no")


@pytest.mark.parametrize("steps", [0, 412])
def test_the_same_error_at_the_same_step_is_not_repeated(steps: int) -> None:
    error = "ValueError: the tensor at 0x7f01 in /tmp/{} is wrong"
    first = run_that_failed(1, error.format("a/x"), steps=steps)
    lost = run_that_failed(2, "", outcome=RunOutcome.LOST)
    where = f"at step {steps}" if steps else "before the first report"
    assert judged(error.format("b/x"), first, steps=steps).endswith(f"same error {where} in runs 1 and 2")
    assert judged(error.format("b/x"), first, lost, steps=steps).endswith("in runs 1 and 3")
    assert judged(error.format("b/x"), first, steps=steps + 1) == ""
    assert judged("ValueError: another", first, steps=steps) == ""
    assert judged(error.format("b/x"), replace(first, lost_steps=None), steps=steps) == ""


@pytest.mark.parametrize(
    "exit_",
    [
        Exit(exit_code=137),
        Exit(exit_code=139),
        Exit(exit_code=125),
        Exit(lost=True),
        Exit(exit_code=1, forced=True),
    ],
)
def test_what_the_script_did_not_cause_is_repeated(exit_: Exit) -> None:
    error = "ModuleNotFoundError: No module named 'x'"
    assert judged(error, run_that_failed(1, error), exit_=exit_) == ""


@pytest.mark.parametrize(
    "error",
    [
        "requests.exceptions.ConnectionError: max retries exceeded",
        "TimeoutError: timed out",
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
        "torch.distributed.DistBackendError: NCCL error in init.cpp",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "OSError: [Errno 5] Input/output error: '/data/train.bin'",
    ],
)
def test_what_may_pass_is_repeated(error: str) -> None:
    assert judged(error, run_that_failed(1, error, steps=9), steps=9) == ""


@pytest.mark.parametrize(
    "error",
    ["OSError: [Errno 28] No space left on device: '7.bin'", "OSError: [Errno 122] Disk quota exceeded"],
)
def test_a_disk_that_stays_full_is_tried_once_more(error: str) -> None:
    assert judged(error, steps=9) == ""
    assert judged(error, run_that_failed(1, error, steps=9), steps=9).endswith("at step 9 in runs 1 and 2")


def test_an_end_without_an_error_is_repeated() -> None:
    said = run_that_failed(1, "step 5", failure="the entrypoint ended with exit code 1")
    assert judged("step 5", said) == ""


def test_the_error_is_found_above_what_is_said_after_it() -> None:
    failure = Failure(run=1, text="ValueError: bad\nresource_tracker: 3 leaked objects", steps=0)
    assert failure.error == "ValueError: bad"

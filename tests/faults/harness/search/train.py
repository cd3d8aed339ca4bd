"""The trial of the fault harness: cheap steps, a checkpoint every few, a journal of what was promised.

The journal is the other side of every claim that the harness checks afterwards: a line says that a call is
about to be made, another that it returned. A line is one write, so a kill of this process loses none of them.
Operations are completed in the order that the harness names in the file of turns.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from pathlib import Path

import resolute
from resolute import core

STEP_SECONDS = 0.01
STEPS_PER_CHECKPOINT = 4
TURN_POLL_SECONDS = 0.02
PROCESS = secrets.token_hex(4)
"""Names this process: in containers of their own all have the same id."""


class Journal:
    """What this process of this run did."""

    def __init__(self, folder: Path) -> None:
        path = folder / f"{os.environ['DET_ALLOCATION_ID']}.{PROCESS}"
        self._descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def note(self, *words: object) -> None:
        os.write(self._descriptor, json.dumps(words).encode() + b"\n")


def loss(x: float, length: int) -> float:
    """Falls with training and depends on nothing else, so that every run sees the same curve."""
    return (x - 0.3) ** 2 + 1 / length


class Training:
    """One run of the trial."""

    def __init__(self, context: core.Context, journal: Journal, *, x: float) -> None:
        self._context = context
        self._journal = journal
        self._x = x
        self._trial_id = os.environ["DET_ALLOCATION_ID"].rpartition(".")[0]
        self._said = 0
        self.step = 0

    def restore(self, checkpoint: str) -> None:
        with self._context.checkpoint.restore_path(checkpoint) as path:
            self.step = int((path / "step").read_text())
            assert (path / "whole").read_text() == "yes", "a checkpoint that is seen is whole"

    def save(self) -> None:
        with self._context.checkpoint.store_path({"steps_completed": self.step}) as (path, uuid):
            (path / "step").write_text(str(self.step))
            (path / "whole").write_text("yes")
        self._journal.note("stored", uuid, self.step)

    def say(self, text: str) -> None:
        self._said += 1
        line = f"{os.environ['DET_ALLOCATION_ID']} {PROCESS} says {self._said}: {text}"
        print(line, flush=True)
        self._journal.note("printed", line)

    def loss(self) -> float:
        return loss(self._x, self.step)

    def report(self, group: str) -> None:
        metrics = {"loss": self.loss()}
        self._journal.note("reporting", group, self.step)
        if group == "training":
            self._context.train.report_training_metrics(steps_completed=self.step, metrics=metrics)
        else:
            self._context.train.report_validation_metrics(steps_completed=self.step, metrics=metrics)
        self._journal.note("reported", group, self.step)
        self.say(f"{group} at step {self.step}")

    def train(self, operation: core.SearcherOperation, *, turns: Path) -> None:
        while self.step < operation.length:
            self.step += 1
            time.sleep(STEP_SECONDS)
            self.report("training")
            if self.step % STEPS_PER_CHECKPOINT == 0 and self.step < operation.length:
                self.save()
            self.leave_if_told()
        self.report("validation")
        self.save()
        while f"{self._trial_id} {operation.length}" not in turns.read_text().splitlines():
            time.sleep(TURN_POLL_SECONDS)
            self.leave_if_told(saved=True)
        operation.report_completed(loss(self._x, operation.length))
        self._journal.note("completed", operation.length)

    def leave_if_told(self, *, saved: bool = False) -> None:
        if self._context.preempt.should_preempt():
            if not saved:
                self.save()
            sys.exit(0)


def main() -> None:
    folder = Path(os.environ["CHAOS_FOLDER"])
    journal = Journal(folder / "journals")
    info = resolute.get_cluster_info()
    assert info is not None
    with core.init() as context:
        training = Training(context, journal, x=info.trial.hparams["x"])
        if info.latest_checkpoint:
            training.restore(info.latest_checkpoint)
        for operation in context.searcher.operations():
            training.train(operation, turns=folder / "turns")


if __name__ == "__main__":
    main()

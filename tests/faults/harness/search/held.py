"""A trial that trains until it is let go: as long as the harness wants, at a pace that costs little.

Its journal is that of ``train.py``. A file of its trial's id, or named ``all``, lets it go.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from train import Journal, Training  # type: ignore[import-not-found]  # It lies beside this file in the trial.

import resolute
from resolute import core

FEWEST_STEPS = 5
STEPS_PER_CHECKPOINT = 50


def is_let_go(folder: Path) -> bool:
    trial_id = os.environ["DET_ALLOCATION_ID"].rpartition(".")[0]
    return any((folder / "let-go" / name).exists() for name in (trial_id, "all"))


def main() -> None:
    folder = Path(os.environ["CHAOS_FOLDER"])
    step_seconds = float(os.environ["HELD_STEP_SECONDS"])
    info = resolute.get_cluster_info()
    assert info is not None
    with core.init() as context:
        training = Training(context, Journal(folder / "journals"), x=info.trial.hparams["x"])
        if info.latest_checkpoint:
            training.restore(info.latest_checkpoint)
        for operation in context.searcher.operations():
            while training.step < FEWEST_STEPS or not is_let_go(folder):
                time.sleep(step_seconds)
                training.step += 1
                training.report("training")
                if training.step % STEPS_PER_CHECKPOINT == 0:
                    training.save()
                training.leave_if_told()
            training.report("validation")
            training.save()
            operation.report_completed(training.loss())


if __name__ == "__main__":
    main()

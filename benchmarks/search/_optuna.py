"""The search with Optuna: two worker processes, one SQLite study, a halving pruner, a checkpoint an epoch."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"
TRIALS, EPOCHS, WORKERS = 16, 16, 2


def study_of(folder: Path, seed: int = 0) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        study_name="race",
        storage=f"sqlite:///{folder}/study.db",
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=4),
        sampler=optuna.samplers.RandomSampler(seed=seed),
    )


def work(folder: Path, seed: int) -> None:
    import optuna

    sys.path.insert(0, str(EXAMPLE))
    import torch
    from data import load_splits  # type: ignore[import-not-found]
    from training import Training  # type: ignore[import-not-found]

    splits = load_splits()

    def objective(trial: Any) -> float:
        hparams = {
            "lr": trial.suggest_float("lr", 1e-4, 1e-1, log=True),
            "hidden": trial.suggest_int("hidden", 16, 256),
            "dropout": trial.suggest_float("dropout", 0.0, 0.6),
            "batch_size": 64,
        }
        training = Training(hparams, *splits, seed=seed * TRIALS + trial.number)
        best = 0.0
        for epoch in range(1, EPOCHS + 1):
            while training.steps < epoch * training.batches_per_epoch:
                training.train_batch()
            best = max(best, training.validate()["accuracy"])
            path = folder / f"{trial.number}-{epoch}"
            path.mkdir()
            torch.save(training.model.state_dict(), path / "model.pt")
            torch.save(training.state_dict(), path / "training.pt")
            trial.report(best, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return best

    study_of(folder, seed).optimize(objective, n_trials=TRIALS // WORKERS)


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) > 3:
        work(folder, seed)
        return
    folder.mkdir(parents=True)
    study_of(folder)
    # Each worker draws its own hyperparameters.
    workers = [
        subprocess.Popen([sys.executable, __file__, str(folder), str(seed * WORKERS + number), "work"])
        for number in range(WORKERS)
    ]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        sys.exit("a worker failed")
    trials = study_of(folder).trials
    values = [value for trial in trials for value in trial.intermediate_values.values()]
    result = {"done": time.time(), "best": max(values), "trials": len(trials), "epochs": len(values)}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

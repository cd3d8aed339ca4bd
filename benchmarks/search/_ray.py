"""The search with Ray Tune: ASHA with two slots, actors used again, a checkpoint an epoch."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"
TRIALS, EPOCHS = 16, 16


def train(hparams: dict[str, Any]) -> None:
    sys.path.insert(0, str(EXAMPLE))
    import torch
    from data import load_splits  # type: ignore[import-not-found]
    from ray import tune
    from training import Training  # type: ignore[import-not-found]

    training = Training(hparams, *load_splits(), seed=1797)
    for epoch in range(1, EPOCHS + 1):
        while training.steps < epoch * training.batches_per_epoch:
            training.train_batch()
        accuracy = training.validate()["accuracy"]
        with tempfile.TemporaryDirectory() as folder:
            torch.save(training.model.state_dict(), Path(folder) / "model.pt")
            torch.save(training.state_dict(), Path(folder) / "training.pt")
            tune.report({"accuracy": accuracy}, checkpoint=tune.Checkpoint.from_directory(folder))


def main() -> None:
    os.environ["RAY_AIR_NEW_OUTPUT"] = "0"
    import numpy as np
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    # What draws hyperparameters there draws from NumPy's own stream.
    np.random.seed(int(sys.argv[2]))
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    space = {
        "lr": tune.loguniform(1e-4, 1e-1),
        "hidden": tune.randint(16, 257),
        "dropout": tune.uniform(0.0, 0.6),
        "batch_size": 64,
    }
    tuner = tune.Tuner(
        train,
        param_space=space,
        tune_config=tune.TuneConfig(
            metric="accuracy",
            mode="max",
            num_samples=TRIALS,
            reuse_actors=True,
            scheduler=ASHAScheduler(max_t=EPOCHS, grace_period=1, reduction_factor=4),
        ),
        run_config=tune.RunConfig(storage_path=str(Path(sys.argv[1]).resolve()), verbose=0),
    )
    results = tuner.fit()
    best = results.get_best_result(scope="all")
    frames = [result.metrics_dataframe for result in results]
    epochs = sum(len(frame) for frame in frames if frame is not None)
    result = {
        "done": time.time(),
        "best": float(best.metrics_dataframe["accuracy"].max()),
        "trials": len(results),
        "epochs": epochs,
    }
    sys.stdout.write(json.dumps(result) + "\n")
    ray.shutdown()


if __name__ == "__main__":
    main()

"""The experiments that the pictures show: a search, and what else is on a cluster on a working day."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

CODE = Path(__file__).parent / "code"
_RESOLUTE = str(Path(sys.executable).with_name("resolute"))
_HPARAMS: Mapping[str, Any] = {
    "lr": {"type": "log", "base": 10, "minval": -5, "maxval": -0.5},
    "dropout": {"type": "double", "minval": 0.0, "maxval": 0.6},
    "optimizer": {"type": "categorical", "vals": ["adam", "sgd", "lion"]},
    "layers": {"type": "int", "minval": 2, "maxval": 8},
}
_FIXED: Mapping[str, Any] = {"lr": 0.004, "dropout": 0.2, "optimizer": "adam", "layers": 4}
_ACCURACY: Mapping[str, Any] = {"metric": "accuracy", "smaller_is_better": False}
SEARCH = 3
"""Number of the experiment whose search is shown."""
_PATIENCE = 900.0


def train_all(folder: Path, environment: Mapping[str, str], *, alerts_to: str) -> None:
    """Submits all of them, and returns when the search has ended and others still wait.

    Args:
        folder: Where configs are written.
        environment: Names the cluster.
        alerts_to: URL that takes alerts, as Slack does.
    """
    _set_alerts(folder, environment, alerts_to)
    single = {"name": "single", **_ACCURACY, "max_length": {"epochs": 6}}
    asha = {"name": "adaptive_asha", **_ACCURACY, "max_length": {"epochs": 16}, "max_trials": 16}
    submissions: tuple[Mapping[str, Any], ...] = (
        {"name": "resnet baseline", "labels": ["baseline"], "searcher": single, "hyperparameters": _FIXED},
        {
            "name": "loader that reads a missing shard",
            "entrypoint": "python3 -c 'import shards'",
            "max_restarts": 1,
            "searcher": single,
            "hyperparameters": _FIXED,
        },
        {
            "name": "vision sweep: learning rate, dropout and optimizer",
            "description": "Which optimizer for the small network?",
            "labels": ["sweep", "q4"],
            "searcher": asha,
            "hyperparameters": _HPARAMS,
            "reproducibility": {"experiment_seed": 17},
        },
    )
    for number, config in enumerate(submissions, start=1):
        _submit(folder, environment, config)
        _run(environment, "experiment", "wait", str(number), check=False)
    _register_best(environment)
    long = {"searcher": {**single, "max_length": {"epochs": 100_000}}, "hyperparameters": _FIXED}
    _submit(folder, environment, {"name": "ablation without dropout", **long}, "--paused")
    for name in ("finetune on the new labels", "nightly regression", "larger batches", "seed 2", "seed 3"):
        _submit(folder, environment, {"name": name, **long})
    _run(environment, "experiment", "kill", str(SEARCH + 6))
    _run(environment, "command", "run", "--detach", "sleep 100000")


def _set_alerts(folder: Path, environment: Mapping[str, str], url: str) -> None:
    path = folder / "alerts.yaml"
    endpoint = {"name": "team", "type": "slack", "url": url}
    rules = [{"on": "experiment", "states": ["ERROR", "COMPLETED"], "to": ["team"]}]
    path.write_text(yaml.safe_dump({"endpoints": [endpoint], "rules": rules}))
    _run(environment, "alert", "set", str(path))


def _register_best(environment: Mapping[str, str]) -> None:
    """Makes a model of the best checkpoint of the search."""
    _run(environment, "model", "create", "digits")
    listed = _run(
        environment,
        "experiment",
        "list-checkpoints",
        str(SEARCH),
        "--best",
        "1",
        "--columns",
        "uuid",
        "--csv",
    )
    _run(environment, "model", "register-version", "digits", listed.split()[-1])


def _submit(folder: Path, environment: Mapping[str, str], config: Mapping[str, Any], *options: str) -> None:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({"entrypoint": "python3 train.py", **config}))
    _run(environment, "experiment", "create", str(path), str(CODE), *options)


def _run(environment: Mapping[str, str], *words: str, check: bool = True) -> str:
    command = [_RESOLUTE, *words]
    ended = subprocess.run(
        command, env=environment, check=check, timeout=_PATIENCE, stdout=subprocess.PIPE, text=True
    )
    return ended.stdout

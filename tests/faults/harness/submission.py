"""Submits the experiments of the harness, whose trials keep journals."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from faults.harness.fault_cluster import FaultCluster

_PROJECT = Path(__file__).parent / "search"
_SECONDS = 300.0


def submit(
    cluster: FaultCluster, folder: Path, config: Mapping[str, Any], variables: Mapping[str, str]
) -> None:
    """Submits an experiment that keeps every checkpoint.

    Args:
        cluster: It is up.
        folder: Keeps its code and its config; trials find it by ``CHAOS_FOLDER``.
        config: The experiment; what the cluster and its engine want is added to it.
        variables: More for the environment of its trials.

    Raises:
        AssertionError: It was not accepted.
    """
    project = folder / "project"
    shutil.copytree(_PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
    engine = cluster.config()
    whole = {
        **engine,
        **config,
        "environment": {
            **engine.get("environment", {}),
            **config.get("environment", {}),
            "environment_variables": [
                f"{name}={value}" for name, value in {"CHAOS_FOLDER": folder, **variables}.items()
            ],
        },
        "checkpoint_storage": {
            **engine.get("checkpoint_storage", {}),
            "save_experiment_best": 0,
            "save_trial_best": 0,
            "save_trial_latest": 100_000,
        },
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(whole))
    cluster.det("e", "create", str(path), str(project), timeout=_SECONDS)


def shared_directory(path: Path) -> Path:
    """Makes a directory that trials may write into: in an engine's containers they are other users."""
    path.mkdir(parents=True)
    path.chmod(0o777)
    return path

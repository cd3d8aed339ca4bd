"""The number of steps that a trial trains, and the expected time of its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resolute_experiments.specs.search import length_of
from resolute_experiments.states import TRAINING_TRIALS
from resolute_experiments.store.trials import Trial


def longest_steps(config: Mapping[str, Any], hparams: Mapping[str, Any]) -> float | None:
    """Finds how many steps the longest trial of a search trains.

    A length without a unit is in the script's own, which is that of its reports.

    Args:
        config: The whole config.
        hparams: The hyperparameters of the trial.

    Returns:
        The steps; None where the config does not tell.
    """
    searcher = config["searcher"]
    length, given = length_of(searcher), searcher.get("max_length")
    if length is None:
        return None
    unit = next(iter(given)) if isinstance(given, Mapping) else "batches"
    if unit == "batches":
        return length
    batch = hparams.get("global_batch_size")
    records = length if unit == "records" else length * (config.get("records_per_epoch") or 0)
    return records / batch if isinstance(batch, int) and batch > 0 and records else None


def trains(trial: Trial) -> bool:
    """Whether a trial holds slots and what it reported last is of its present run."""
    return trial.state in TRAINING_TRIALS and trial.reported_run == trial.run


def estimated_end(trial: Trial, config: Mapping[str, Any]) -> float | None:
    """Estimates when a trial will have trained for as long as its search lets the longest one.

    Returns:
        Unix time; None unless it trains, and where its rate or that length is not known.
    """
    steps, rate = longest_steps(config, trial.hparams), trial.steps_per_second
    if not trains(trial) or steps is None or not rate:
        return None
    assert trial.reported_at is not None
    assert trial.reported_steps is not None
    return trial.reported_at + max(steps - trial.reported_steps, 0) / rate

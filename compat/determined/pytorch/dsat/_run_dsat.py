"""Runs a search for a DeepSpeed config, as the code of an experiment."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import Any

import yaml

import resolute
from determined.pytorch.dsat.__main__ import ARGUMENTS, SMALLER
from determined.pytorch.dsat.config import DSAT_MODE, OVERWRITES, get_ds_config_from_hparams, merge
from determined.pytorch.dsat.methods.asha import ASHADSATSearchMethod
from determined.pytorch.dsat.methods.base import BaseDSATSearchMethod, Tuning
from determined.pytorch.dsat.methods.binary import BinarySearchDSATSearchMethod
from determined.pytorch.dsat.methods.random import RandomDSATSearchMethod
from determined.pytorch.dsat.trials import DSATTrialTracker
from resolute import core
from resolute.client import Client
from resolute.searcher import RemoteSearchRunner

_METHODS: dict[str, tuple[type[BaseDSATSearchMethod], tuple[str, ...]]] = {
    "random": (RandomDSATSearchMethod, ("trials_per_random_config", "early_stopping")),
    "binary": (BinarySearchDSATSearchMethod, ("search_range_factor",)),
    "asha": (
        ASHADSATSearchMethod,
        ("search_range_factor", "max_rungs", "min_binary_search_trials", "asha_early_stopping", "divisor"),
    ),
}


def trial_config(
    config: dict[str, Any], arguments: argparse.Namespace, *, runner: int | None
) -> dict[str, Any]:
    """Returns the config of the experiment that is searched."""
    profiled = {
        "enabled": True,
        "start_profile_step": arguments.start_profile_step,
        "end_profile_step": arguments.end_profile_step,
    }
    hparams = dict(config["hyperparameters"])
    hparams[OVERWRITES] = merge(hparams.get(OVERWRITES) or {}, {"autotuning": profiled})
    before = config.get("description")
    return {
        **config,
        "description": f"(#{runner}) generated" + (f" - {before}" if before else ""),
        "searcher": {
            "name": "custom",
            "metric": arguments.metric,
            "smaller_is_better": arguments.metric in SMALLER,
            "unit": "batches",
        },
        "hyperparameters": {**hparams, DSAT_MODE: True},
    }


def make_method(config: dict[str, Any], arguments: argparse.Namespace) -> BaseDSATSearchMethod:
    """Returns the search method that the arguments name."""
    hparams = {**config["hyperparameters"], DSAT_MODE: True}
    directory = Path(arguments.model_dir)
    if not (directory / hparams["deepspeed_config"]).is_file():
        directory = Path()
    tracker = DSATTrialTracker(
        metric=arguments.metric,
        smaller_is_better=arguments.metric in SMALLER,
        slots_per_trial=int((config.get("resources") or {}).get("slots_per_trial", 1)),
        max_trials=arguments.max_trials,
        max_concurrent_trials=arguments.max_concurrent_trials,
        max_slots=arguments.max_slots,
    )
    kind, names = _METHODS[arguments.search_method]
    tuning = Tuning(
        stages=arguments.zero_stages,
        start_profile_step=arguments.start_profile_step,
        end_profile_step=arguments.end_profile_step,
        seed=arguments.random_seed,
    )
    return kind(
        tracker,
        hparams=hparams,
        ds_config=get_ds_config_from_hparams(hparams, directory),
        tuning=tuning,
        **{name: getattr(arguments, name) for name in names},
    )


def best_config(config: dict[str, Any], method: BaseDSATSearchMethod) -> dict[str, Any] | None:
    """Returns the user's config with the best DeepSpeed config that was found; None if none worked."""
    best = method.tracker.best
    if best is None:
        return None
    overwrites = {name: value for name, value in best.ds_config.items() if name != "autotuning"}
    return {**config, "hyperparameters": {**config["hyperparameters"], OVERWRITES: overwrites}}


def main() -> None:
    """Runs the search."""
    logging.basicConfig(level=logging.INFO, format=resolute.LOG_FORMAT)
    arguments = argparse.Namespace(**json.loads(Path(ARGUMENTS).read_text()))
    config: dict[str, Any] = yaml.safe_load(Path(arguments.config_path).read_text())
    method = make_method(config, arguments)
    info = resolute.get_cluster_info()
    with core.init() as context:
        runner = RemoteSearchRunner(method, context)
        searched = trial_config(config, arguments, runner=None if info is None else info.trial.experiment_id)
        number = runner.run(searched, arguments.model_dir, arguments.include)
        # The runner saves before each answer: what followed the last one belongs to the result too.
        runner.save_state(number, [])
        full = best_config(config, method)
        if arguments.run_full_experiment and full is not None:
            with Client() as client:
                created = client.create_experiment(full, arguments.model_dir, arguments.include)
            logging.getLogger("determined.pytorch.dsat").info("submitted experiment %d", created.id)


if __name__ == "__main__":
    main()

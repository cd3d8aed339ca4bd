"""``python3 -m determined.pytorch.dsat``: submits an experiment that searches for a DeepSpeed config."""

from __future__ import annotations

import argparse
import json
import logging
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from determined.pytorch.dsat.config import CONFIG
from resolute.client import Client

ARGUMENTS = "dsat_arguments.json"
"""File of the arguments, among the code of the experiment that runs the search."""
SMALLER = ("forward", "backward", "latency")
LARGER = ("throughput", "FLOPS_per_gpu")
_RUNNER = "python3 -m determined.pytorch.dsat._run_dsat"


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("config_path", help="config of the experiment")
    shared.add_argument("model_dir", help="directory of its code")
    shared.add_argument("-i", "--include", nargs="+", default=[], help="more files for its code")
    shared.add_argument("-mt", "--max-trials", type=int, default=64)
    shared.add_argument("-ms", "--max-slots", type=int, default=None)
    shared.add_argument("-mct", "--max-concurrent-trials", type=int, default=16)
    shared.add_argument("-m", "--metric", choices=[*SMALLER, *LARGER], default="FLOPS_per_gpu")
    shared.add_argument("--run-full-experiment", action="store_true")
    shared.add_argument("-z", "--zero-stages", type=int, nargs="+", choices=range(4), default=[1, 2, 3])
    shared.add_argument("--start-profile-step", type=int, default=3)
    shared.add_argument("--end-profile-step", type=int, default=5)
    shared.add_argument("-r", "--random-seed", type=int, default=42)
    shared.add_argument("--search-runner-config", default=None)
    shared.add_argument("--max-search-runner-restarts", type=int, default=5)
    parser = argparse.ArgumentParser(prog="determined.pytorch.dsat", description="DeepSpeed Autotune")
    methods = parser.add_subparsers(dest="search_method", required=True)
    rand = methods.add_parser("random", parents=[shared])
    rand.add_argument("--trials-per-random-config", type=int, default=5)
    rand.add_argument("--early-stopping", type=int, default=None)
    binary, asha = (methods.add_parser(name, parents=[shared]) for name in ("binary", "asha"))
    for method in (binary, asha):
        method.add_argument("--search-range-factor", type=float, default=1.0)
    asha.add_argument("--max-rungs", type=int, default=5)
    asha.add_argument("--min-binary-search-trials", type=int, default=3)
    asha.add_argument("--asha-early-stopping", type=int, default=0)
    asha.add_argument("--divisor", type=int, default=2)
    arguments = parser.parse_args(words)
    if arguments.max_trials < 2:
        parser.error("--max-trials must be at least 2: the first trial measures the model")
    if arguments.start_profile_step > arguments.end_profile_step:
        parser.error("--start-profile-step must not be after --end-profile-step")
    return arguments


def check_config(config: dict[str, Any], model_dir: Path) -> None:
    """Makes sure that the search and the entrypoint mean the same DeepSpeed config.

    Raises:
        AssertionError: The config names none, or one that is not in the code.
        ValueError: The entrypoint names another.
    """
    named = (config.get("hyperparameters") or {}).get(CONFIG)
    assert named, f"the config lacks hyperparameters.{CONFIG}: the path of the DeepSpeed config in MODEL_DIR"
    assert (model_dir / named).is_file(), f"hyperparameters.{CONFIG} is {named}, which {model_dir} lacks"
    entrypoint = config.get("entrypoint") or ""
    words = shlex.split(entrypoint) if isinstance(entrypoint, str) else list(entrypoint)
    for option in ("--deepspeed", "--deepspeed_config"):
        if option in words[:-1] and words[words.index(option) + 1] != named:
            raise ValueError(
                f"hyperparameters.{CONFIG} is {named}, which does not match the path in the entrypoint: "
                f"{option} {words[words.index(option) + 1]}"
            )


def runner_config(config: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the config of the experiment that runs the search."""
    given = {name: value for name, value in vars(arguments).items() if value is not None}
    if arguments.search_runner_config is not None:
        replaced: dict[str, Any] = yaml.safe_load(Path(arguments.search_runner_config).read_text())
        return {**replaced, "entrypoint": _RUNNER, "hyperparameters": given}
    return {
        **config,
        "name": f"(DSAT) {config.get('name', 'search')}",
        "searcher": {"name": "single", "metric": arguments.metric, "max_length": 1},
        "max_restarts": arguments.max_search_runner_restarts,
        "resources": {**(config.get("resources") or {}), "slots_per_trial": 0},
        "entrypoint": _RUNNER,
        "hyperparameters": given,
    }


def main(words: Sequence[str] | None = None) -> int:
    """Submits the experiment; returns the exit code."""
    logging.basicConfig(level=logging.INFO)
    arguments = parse_arguments(words)
    config_path, model_dir = Path(arguments.config_path).resolve(), Path(arguments.model_dir).resolve()
    includes = [Path(path).resolve() for path in arguments.include]
    config = yaml.safe_load(config_path.read_text())
    check_config(config, model_dir)
    with tempfile.TemporaryDirectory() as empty:
        # Where the search runs, everything lies beside its arguments.
        arguments.config_path, arguments.model_dir = config_path.name, model_dir.name
        arguments.include = [path.name for path in includes]
        (Path(empty) / ARGUMENTS).write_text(json.dumps(vars(arguments)))
        with Client() as client:
            created = client.create_experiment(
                runner_config(config, arguments), empty, [model_dir, config_path, *includes]
            )
    print(f"Created experiment {created.id}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

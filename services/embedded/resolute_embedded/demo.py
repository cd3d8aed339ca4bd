"""`resolute demo`: starts a cluster on this machine, searches on real data, and saves the best model."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml
from rich.console import Console
from rich.table import Table

from resolute.client import Client, Experiment, ExperimentState, Trial, TrialState
from resolute.client.connection.home import Home
from resolute.contracts.distribution import install_command
from resolute.errors import FailedPreconditionError

BEST = "best.json"
GOAL = 0.95
TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 2.0
ROWS = 10
_NEEDED = ("numpy", "sklearn", "torch")
_MARKER = ".resolute-demo"
"""A folder that has this file is ours, and is made anew."""

console = Console(highlight=False)


@click.command()
@click.argument(
    "directory", type=click.Path(file_okay=False, path_type=Path, resolve_path=True), default="resolute-demo"
)
@click.option("--keep", is_flag=True, help="Leave the cluster up, to look at the search in the browser.")
def demo(directory: Path, keep: bool) -> None:
    """Start a cluster, search on real data, fetch the best model into DIRECTORY.

    16 trials of a small network learn handwritten digits; nothing is downloaded. The cluster has a home in
    DIRECTORY [resolute-demo], and is stopped at the end.
    """
    if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise FailedPreconditionError(
            f"the demonstration needs {', '.join(missing)}; run `{install_command('workstation', 'torch')}`"
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` runs, as on Ctrl-C
    _use_own_home(directory)
    stays = False
    try:
        _resolute("up", "--detach")
        digits = _digits()
        with Client() as cluster:
            experiment = cluster.create_experiment(_config(digits), digits)
            console.print(f"Created experiment {experiment.id}: {experiment.name}")
            with killed_if_abandoned(experiment):
                follow(experiment)
            code = report(experiment, directory)
        stays = keep
        _say_what_to_look_at(experiment, directory, kept=keep)
    finally:
        if not stays:
            _resolute("down", check=False)
    sys.exit(code)


@contextlib.contextmanager
def killed_if_abandoned(experiment: Experiment) -> Iterator[None]:
    """Ends the trials at once if the block fails, so that `down` need not wait for their checkpoints."""
    try:
        yield
    except BaseException:
        console.print("giving up: ending the trials")
        experiment.kill()
        raise


def follow(experiment: Experiment) -> None:
    """Prints how the search goes, until it ends.

    Raises:
        TimeoutError: It does not end.
    """
    began = time.monotonic()
    expected = experiment.config["searcher"]["max_trials"]
    shown = ""
    while True:
        experiment.reload()
        elapsed = time.monotonic() - began
        line = _progress(experiment, expected)
        if line != shown:
            console.print(f"{elapsed:5.0f} s  {line}", soft_wrap=True)
            shown = line
        if experiment.state.is_terminal:
            return
        if elapsed > TIMEOUT_SECONDS:
            raise TimeoutError(f"the search has not ended in {TIMEOUT_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)


def report(experiment: Experiment, directory: Path) -> int:
    """Prints the outcome and fetches the best model; returns the exit code.

    Args:
        experiment: A search that ended.
        directory: Gets the model as `best`, and what was found by which seed as `best.json`.
    """
    if experiment.state is not ExperimentState.COMPLETED:
        console.print(f"the experiment ended in {experiment.state.name}; its logs are in {directory}/home")
        return 1
    standings = standings_of(experiment)
    console.print(_ranking(standings))
    winner = standings[0]
    checkpoint = winner.trial.select_checkpoint(best=True)
    model = checkpoint.download(str(directory / "best"))
    console.print(f"Best: trial {winner.trial.id} with a validation accuracy of {winner.score:.4f}")
    for name, value in winner.trial.hparams.items():
        console.print(f"  {name}: {_shown(value)}")
    seed = experiment.config["reproducibility"]["experiment_seed"]
    best = {"seed": seed, "accuracy": winner.best, "hparams": dict(winner.trial.hparams)}
    (directory / BEST).write_text(json.dumps(best, indent=2) + "\n")
    console.print(f"Its checkpoint {checkpoint.uuid} is in", model, soft_wrap=True)
    if winner.score < GOAL:
        console.print(f"that is below the goal of {GOAL}")
        return 1
    return 0


@dataclass(frozen=True)
class Standing:
    """A trial with its best result."""

    trial: Trial
    best: float | None
    steps: int

    @property
    def score(self) -> float:
        """The best, or less than any."""
        return -1.0 if self.best is None else self.best


def standings_of(experiment: Experiment) -> list[Standing]:
    """All trials, the best first."""
    metric = experiment.config["searcher"]["metric"]
    standings = []
    for trial in experiment.iter_trials():
        summary = trial.summary_metrics.get("validation_metrics", {}).get(metric)
        best = summary["max"] if summary else None
        steps = summary["last_steps"] if summary else 0
        standings.append(Standing(trial, best, steps))
    return sorted(standings, key=lambda standing: standing.score, reverse=True)


def _progress(experiment: Experiment, expected: int) -> str:
    standings = standings_of(experiment)
    states = [standing.trial.state for standing in standings]
    done = sum(state.is_terminal for state in states)
    running = sum(state.holds_slots for state in states)
    # A trial that did its part waits until the search wants more of it, or ends it.
    waiting = states.count(TrialState.WAITING)
    line = (
        f"{experiment.progress:4.0%}  trials: {running} running, {waiting} waiting, {done} of {expected} done"
    )
    if standings and standings[0].best is not None:
        line += f"; best accuracy {standings[0].best:.4f} (trial {standings[0].trial.id})"
    return line


def _ranking(standings: list[Standing]) -> Table:
    names = [name for name in standings[0].trial.hparams if name != "batch_size"]
    table = Table(title=f"The best {min(ROWS, len(standings))} of {len(standings)} trials")
    for column in ("rank", "trial", "accuracy", "steps", *names):
        table.add_column(column, justify="right")
    for rank, standing in enumerate(standings[:ROWS], start=1):
        best = "-" if standing.best is None else f"{standing.best:.4f}"
        values = [_shown(standing.trial.hparams[name]) for name in names]
        table.add_row(str(rank), str(standing.trial.id), best, str(standing.steps), *values)
    return table


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _say_what_to_look_at(experiment: Experiment, directory: Path, *, kept: bool) -> None:
    endpoint = Home.from_environment(os.environ).read_endpoint()
    lines = [f"  {directory / 'best'}: the best model; {_digits()}: the code that trained it"]
    # `make demo` has an environment of its own, which no shell has activated.
    program = "resolute" if shutil.which("resolute") == str(_program()) else str(_program())
    if kept and endpoint is not None:
        here = f"RESOLUTE_HOME={os.environ['RESOLUTE_HOME']} {program}"
        if endpoint.http_url and endpoint.has_page:
            page = f"{endpoint.http_url}/experiments/{experiment.id}"
            lines.append(f"  {page}: the search, once `{here} open` has signed you in")
        lines.append(f"  {here} trial list: the same in the terminal")
        lines.append(f"  {here} down: stops the cluster")
    else:
        lines.append(f"  the search in the browser: `{program} demo --keep`, in a clone `make demo KEEP=1`")
    lines.append(
        f"  a script of your own: `{program} up --detach`, then `{program} init`, "
        "and docs/tour.md in the repository"
    )
    console.print("\nWhat to look at:", *lines, sep="\n", soft_wrap=True)


def _use_own_home(directory: Path) -> None:
    """Points this process and its children at a fresh cluster, whatever else is configured here."""
    for name in [name for name in os.environ if name.startswith(("RESOLUTE_", "DET_"))]:
        del os.environ[name]
    home = directory / "home"
    os.environ["RESOLUTE_HOME"] = str(home)
    if directory.exists() and any(directory.iterdir()) and not (directory / _MARKER).exists():
        raise FailedPreconditionError(f"{directory} has other files; name an empty directory")
    if home.exists():
        # A demo that was killed outright may have left its cluster, as one with --keep did.
        _resolute("down", check=False, quiet=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / _MARKER).touch()


def _program() -> Path:
    return Path(sys.executable).with_name("resolute")


def _resolute(*arguments: str, check: bool = True, quiet: bool = False) -> None:
    subprocess.run([_program(), *arguments], check=check, stdout=subprocess.DEVNULL if quiet else None)


def _config(digits: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((digits / "adaptive.yaml").read_text())
    return config


def _digits() -> Path:
    """The code of the search: in the package, or in the checkout that is installed."""
    inside = Path(__file__).with_name("digits")
    return inside if inside.exists() else Path(__file__).parents[3] / "examples" / "digits"

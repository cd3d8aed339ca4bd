"""The whole platform in one go: a cluster on this machine, a search over real data, the best model on disk.

`make demo` runs this. Everything stays below build/demo, and nothing is left running.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from resolute.client import Client, ExperimentState, Trial, TrialState

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits"
BUILD = ROOT / "build" / "demo"
HOME = BUILD / "home"
BEST = "best.json"
RESOLUTE = str(Path(sys.executable).parent / "resolute")

GOAL = 0.95
TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 2.0
ROWS = 10

console = Console(highlight=False)


@dataclass(frozen=True)
class Standing:
    """A trial and the best that it has shown."""

    trial: Trial
    best: float | None
    steps: int

    @property
    def score(self):
        return -1.0 if self.best is None else self.best


def main():
    use_own_home()
    try:
        subprocess.run([RESOLUTE, "up", "--detach"], check=True)
        with Client() as cluster:
            experiment = cluster.create_experiment(DIGITS / "adaptive.yaml", DIGITS)
            console.print(f"Created experiment {experiment.id}: {experiment.name}")
            with killed_if_abandoned(experiment):
                follow(experiment)
            return report(experiment)
    finally:
        subprocess.run([RESOLUTE, "down"], check=False)


def use_own_home():
    """Points this process and its children at a fresh cluster, whatever else is configured here."""
    for name in [name for name in os.environ if name.startswith(("RESOLUTE_", "DET_"))]:
        del os.environ[name]
    os.environ["RESOLUTE_HOME"] = str(HOME)
    if HOME.exists():
        # A demo that was killed outright may have left its cluster.
        subprocess.run([RESOLUTE, "down"], check=False, stdout=subprocess.DEVNULL)
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)


@contextlib.contextmanager
def killed_if_abandoned(experiment):
    """Ends the trials at once if the block fails, so that `down` need not wait for their checkpoints."""
    try:
        yield
    except BaseException:
        console.print("giving up: ending the trials")
        experiment.kill()
        raise


def follow(experiment):
    """Prints how the search goes, until it ends."""
    began = time.monotonic()
    expected = experiment.config["searcher"]["max_trials"]
    shown = ""
    while True:
        experiment.reload()
        elapsed = time.monotonic() - began
        line = progress(experiment, expected)
        if line != shown:
            console.print(f"{elapsed:5.0f} s  {line}", soft_wrap=True)
            shown = line
        if experiment.state.is_terminal:
            return
        if elapsed > TIMEOUT_SECONDS:
            raise TimeoutError(f"the search has not ended in {TIMEOUT_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)


def progress(experiment, expected):
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


def standings_of(experiment):
    """All trials, the best first."""
    metric = experiment.config["searcher"]["metric"]
    standings = []
    for trial in experiment.iter_trials():
        summary = trial.summary_metrics.get("validation_metrics", {}).get(metric)
        best = summary["max"] if summary else None
        steps = summary["last_steps"] if summary else 0
        standings.append(Standing(trial, best, steps))
    return sorted(standings, key=lambda standing: standing.score, reverse=True)


def report(experiment):
    """Prints the outcome and fetches the best model; returns the exit code."""
    if experiment.state is not ExperimentState.COMPLETED:
        console.print(f"the experiment ended in {experiment.state.name}; its logs are in {HOME}")
        return 1
    standings = standings_of(experiment)
    console.print(ranking(standings))
    winner = standings[0]
    checkpoint = winner.trial.select_checkpoint(best=True)
    directory = checkpoint.download(str(BUILD / "best"))
    console.print(f"Best: trial {winner.trial.id} with a validation accuracy of {winner.score:.4f}")
    for name, value in winner.trial.hparams.items():
        console.print(f"  {name}: {shown(value)}")
    keep_best(experiment, winner)
    console.print(f"Its checkpoint {checkpoint.uuid} is in", directory, soft_wrap=True)
    if winner.score < GOAL:
        console.print(f"that is below the goal of {GOAL}")
        return 1
    return 0


def keep_best(experiment, winner):
    """Writes down what was found by which seed: `make compose-demo` compares it."""
    seed = experiment.config["reproducibility"]["experiment_seed"]
    found = {"seed": seed, "accuracy": winner.best, "hparams": dict(winner.trial.hparams)}
    (BUILD / BEST).write_text(json.dumps(found, indent=2) + "\n")


def ranking(standings):
    names = [name for name in standings[0].trial.hparams if name != "batch_size"]
    table = Table(title=f"The best {min(ROWS, len(standings))} of {len(standings)} trials")
    for column in ("rank", "trial", "accuracy", "steps", *names):
        table.add_column(column, justify="right")
    for rank, standing in enumerate(standings[:ROWS], start=1):
        best = "-" if standing.best is None else f"{standing.best:.4f}"
        values = [shown(standing.trial.hparams[name]) for name in names]
        table.add_row(str(rank), str(standing.trial.id), best, str(standing.steps), *values)
    return table


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` runs, as on Ctrl-C
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

"""Plants hangs in trainings of four ranks and measures when they are found: ``make hangs``."""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from support.clusters.embedded import embedded
from support.processes.clean_ending import end_cleanly
from support.waiting import wait_until

from resolute.client import Client, Experiment

SCRIPT = Path(__file__).parent / "hanging"
KINDS = ("sleep", "loader", "file", "ended", "loop")
RANKS = 4
LATEST = 1.2
"""A hang is found within so many times the limit."""
_FOUND = re.compile(r"nothing of the run moves: (?P<sentence>.*)")
_PLANTED = re.compile(r"planted at (?P<time>[\d.]+)")
_START_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Planted:
    """A hang that one rank causes."""

    kind: str
    rank: int
    step: int


@dataclass(frozen=True, slots=True)
class Found:
    """How a hang was found."""

    planted: Planted
    seconds: float
    """From the last step to the sentence."""
    sentence: str

    @property
    def names_rank(self) -> bool:
        """Whether the sentence names at its end the rank that keeps the others waiting, and only that one."""
        last = self.sentence.rpartition(";")[2]
        return re.match(rf" rank {self.planted.rank} ", last) is not None


def cases(count: int) -> list[Planted]:
    """So many hangs, of all kinds and ranks by turns."""
    return [
        Planted(KINDS[index % len(KINDS)], rank=index // len(KINDS) % RANKS, step=20 + 7 * (index % 4))
        for index in range(count)
    ]


def submit(client: Client, planted: Planted, *, after: float) -> Experiment:
    """Submits a training that will hang."""
    config = {
        "name": f"hang-{planted.kind}-{planted.rank}",
        "entrypoint": "python3 -m determined.launch.torch_distributed train.py",
        "resources": {"slots_per_trial": RANKS},
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
        "hyperparameters": {"kind": planted.kind, "rank": planted.rank, "step": planted.step},
        "hang": {"after": after},
        "max_restarts": 0,
    }
    return client.create_experiment(config, str(SCRIPT))


def find(client: Client, planted: Planted, *, after: float) -> Found:
    """Plants a hang and waits until it is found."""
    experiment = submit(client, planted, after=after)
    trial = experiment.await_first_trial()
    try:

        def told() -> tuple[float, str] | None:
            found, began = None, 0.0
            for line in trial.iter_logs():
                if match := _PLANTED.search(line):
                    began = float(match["time"])
                if match := _FOUND.search(line):
                    found = (time.time() - began, match["sentence"])
            return found

        limit = _START_SECONDS + 3 * after
        found = wait_until(told, what=f"{planted} to be found", seconds=limit, pause=0.5)
    finally:
        experiment.kill()
    assert found is not None
    return Found(planted, *found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; 1 if a hang was found late, or too few sentences name the rank."""
    parser = argparse.ArgumentParser(prog="make hangs", description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--after", type=float, default=20.0, help="seconds, as hang.after")
    parser.add_argument("--parallel", type=int, default=2, help="trainings at a time")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as home,
        embedded(Path(home), slots=RANKS * options.parallel) as cluster,
        cluster.client() as client,
        ThreadPoolExecutor(options.parallel) as pool,
    ):
        late = unnamed = 0
        for found in pool.map(
            lambda planted: find(client, planted, after=options.after), cases(options.count)
        ):
            late += found.seconds > LATEST * options.after
            unnamed += not found.names_rank
            mark = "" if found.names_rank else "  NOT NAMED"
            subject = f"{found.planted.kind:7} rank {found.planted.rank}"
            sys.stdout.write(f"{subject}: {found.seconds:5.1f} s{mark}  {found.sentence}\n")
            sys.stdout.flush()
    named = options.count - unnamed
    sys.stdout.write(f"{options.count - late} of {options.count} in time, {named} named\n")
    return int(late > 0 or named < 0.96 * options.count)


if __name__ == "__main__":
    end_cleanly()
    sys.exit(main())

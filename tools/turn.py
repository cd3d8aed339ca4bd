"""Runs some of the suites that `make test` leaves out: ``python tools/turn.py --seed 7``.

Each wants programs of its own, and together they take hours. So each change runs a few, in turn: the seed
names the first of the table, and those after it follow as far as the time goes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Suite:
    """Tests with what they need.

    Attributes:
        name: What it is called on the command line.
        minutes: How long it takes on two cores, with the programs that it installs.
        target: Arguments of make.
        install: The script that installs what Python's packages lack, if there is one.
        variable: The variable of the environment without which it cannot run.
        by_name: Whether it runs only where it is named: it was not seen to pass whole since it changed.
    """

    name: str
    minutes: int
    target: tuple[str, ...]
    install: str = ""
    variable: str = ""
    by_name: bool = False


_ENGINES = "tools/install_engines.sh"
_CLIENTS = "tools/install_clients.sh"
SUITES = (
    Suite("clients", 7, ("clients",), _CLIENTS),
    Suite("container", 8, ("engines", "ENGINE=container"), _ENGINES),
    Suite("deployment", 3, ("deployment",)),
    Suite("slurm", 10, ("engines", "ENGINE=slurm"), _ENGINES),
    Suite("nginx", 10, ("front", "FRONTS=nginx", "SAMPLE=1"), _CLIENTS, by_name=True),
    Suite("kubernetes", 8, ("engines", "ENGINE=kubernetes"), _ENGINES, variable="RESOLUTE_TEST_KUBE"),
    Suite("openapi", 3, ("openapi",)),
    Suite("images", 15, ("images",), "tools/install_images.sh", by_name=True),
    Suite("ray", 6, ("engines", "ENGINE=ray")),
    Suite("envoy", 8, ("front", "FRONTS=envoy", "SAMPLE=1"), _CLIENTS, by_name=True),
    Suite("compose-demo", 8, ("compose-demo",), "tools/install_images.sh", by_name=True),
    Suite("install-lines", 20, ("install-lines",), by_name=True),
    Suite("docs", 2, ("docs",)),
)
"""In the order of their turns: long and short ones mixed."""


def turn(suites: Sequence[Suite], *, seed: int, minutes: int) -> list[Suite]:
    """Returns the suites of a turn: the seed's and those after it, without those that would take too long."""
    first = seed % len(suites)
    chosen: list[Suite] = []
    for suite in (*suites[first:], *suites[:first]):
        if sum(chosen_suite.minutes for chosen_suite in chosen) + suite.minutes <= minutes:
            chosen.append(suite)
    return chosen


def run(suite: Suite, *, seed: int) -> bool:
    """Installs what a suite needs and runs it; returns whether it passed."""
    started = time.monotonic()
    commands = [[suite.install]] if suite.install else []
    commands.append(["make", *suite.target, f"SEED={seed}"])
    passed = all(subprocess.run(command, cwd=ROOT, check=False).returncode == 0 for command in commands)
    _say(
        f"{suite.name} {'passed' if passed else 'FAILED'} in {(time.monotonic() - started) / 60:.1f} minutes"
    )
    return passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="run these instead of the seed's")
    parser.add_argument("--seed", type=int, default=0, help="names the first suite, and seeds the samples")
    parser.add_argument("--minutes", type=int, default=20, help="how long they may take [%(default)s]")
    given = parser.parse_args()
    if unknown := set(given.names) - {suite.name for suite in SUITES}:
        known = ", ".join(suite.name for suite in SUITES)
        parser.error(f"no suite is called {', '.join(sorted(unknown))}: there are {known}")
    able = [suite for suite in SUITES if not suite.variable or suite.variable in os.environ]
    for suite in SUITES:
        if suite not in able:
            _say(f"{suite.name} cannot run: {suite.variable} is not set")
    if given.names:
        chosen = [suite for suite in able if suite.name in given.names]
    else:
        able = [suite for suite in able if not suite.by_name]
        chosen = turn(able, seed=given.seed, minutes=given.minutes)
        names = ", ".join(suite.name for suite in chosen) or "none, for each takes longer"
        _say(
            f"seed {given.seed} begins with suite {given.seed % len(able) + 1} of {len(able)}; "
            f"in {given.minutes} minutes run: {names}"
        )
    failed = [suite.name for suite in chosen if not run(suite, seed=given.seed)]
    if failed:
        sys.exit(
            f"failed: {', '.join(failed)}. Again: make turn SEED={given.seed} SUITES='{' '.join(failed)}'"
        )


def _say(line: str) -> None:
    sys.stdout.write(f"turn: {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""A search of short trials, from the command to the best model on disk, beside Ray Tune and Optuna.

    python benchmarks/search/race.py [--rounds 1] [--only resolute optuna]
    python benchmarks/search/race.py --rounds 10 --only resolute optuna  # quality as well

Each round has a seed of its own, from 0 on. 16 trials of examples/digits train for up to 16 epochs on 2 slots
and write a checkpoint an epoch. Each contender is a command of its own with an empty folder; for Resolute
that includes ``resolute up``, and the example's config is taken as it is but for the seed, or with
``environment.warm_start: false`` (``resolute-off``). With three rounds or more its best accuracy must be that
of the faster peer, within two standard errors. Beside the wall time stands what all its processes took of the
processors, which other work on the machine changes less.
Ray Tune is run where ``.cache/race`` has it:

    python3 -m venv .cache/race
    .cache/race/bin/pip install 'ray[tune]==2.60.*'
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RAY = HERE.parents[1] / ".cache" / "race" / "bin" / "python"
GOAL = 1.0
"""Of the faster peer's time, with everything durable; a run that takes longer exits with 1."""
_LEAST_ROUNDS = 3
"""With fewer nothing is said of quality."""
_PR_SET_CHILD_SUBREAPER = 36
CONTENDERS: dict[str, list[str]] = {
    "resolute": [sys.executable, "_resolute.py", "FOLDER", "auto", "SEED"],
    "resolute-off": [sys.executable, "_resolute.py", "FOLDER", "off", "SEED"],
    "optuna": [sys.executable, "_optuna.py", "FOLDER", "SEED"],
    "ray": [str(RAY), "_ray.py", "FOLDER", "SEED"],
}


def race(name: str, folder: Path, seed: int) -> dict[str, Any]:
    """Runs one contender; returns what it says, with the seconds in all and without ``up``."""
    placed = {"FOLDER": str(folder / name), "SEED": str(seed)}
    command = [placed.get(word, word) for word in CONTENDERS[name]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if name == "ray":
        # Ray's own packages first, then those of the project: one torch for all.
        environment["PYTHONPATH"] = sysconfig.get_path("purelib")
    before = _processor_seconds()
    begun = time.time()
    ended = subprocess.run(
        command,
        cwd=HERE,
        env=environment,
        capture_output=True,
        check=False,
        text=True,
    )
    if ended.returncode:
        sys.exit(f"{name} failed:\n{ended.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    result["processor"] = _processor_seconds() - before
    result["seconds"] = result["done"] - begun
    result["without_up"] = result["done"] - result.get("up", begun)
    return result


def _processor_seconds() -> float:
    """What every process took that this one or its children started, once all have ended."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    options = parser.parse_args()
    names = [name for name in options.only if name != "ray" or RAY.exists()]
    if "ray" in options.only and not RAY.exists():
        sys.stdout.write("absent: Ray Tune; see the top of this file for how it is installed\n")
    sys.stdout.write(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    # Processes that detach themselves, as a cluster does, are waited for here.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    rounds = {name: _rounds(name, options.rounds) for name in names}
    return 0 if "resolute" not in rounds or _won(rounds) else 1


def _rounds(name: str, count: int) -> list[dict[str, Any]]:
    """Races one contender a few times, and prints a line."""
    results = []
    for seed in range(count):
        with tempfile.TemporaryDirectory(prefix="resolute-race-") as folder:
            results.append(race(name, Path(folder), seed))
    best = [result["best"] for result in results]
    seconds, without_up = _median(results, "seconds"), _median(results, "without_up")
    sys.stdout.write(
        f"{name:14} {seconds:6.1f} s, {without_up:6.1f} s without up, "
        f"{_median(results, 'processor'):.1f} s of processors; {results[-1]['trials']} trials, "
        f"{_median(results, 'epochs'):g} epochs, best accuracy {statistics.mean(best):.4f}"
        f" ({min(best):.4f} to {max(best):.4f} of {count} seeds)\n"
    )
    sys.stdout.flush()
    return results


def _median(results: list[dict[str, Any]], name: str) -> float:
    return statistics.median(float(result[name]) for result in results)


def _won(rounds: dict[str, list[dict[str, Any]]]) -> bool:
    """Compares with the fastest peer; returns whether the goals of time and of quality are met."""
    peers = [name for name in rounds if not name.startswith("resolute")]
    if not peers:
        return True
    fastest = min(peers, key=lambda name: _median(rounds[name], "seconds"))
    ours, theirs = rounds["resolute"], rounds[fastest]
    beside = _median(ours, "seconds") / _median(theirs, "seconds")
    sys.stdout.write(
        f"resolute beside {fastest}: {beside:.2f}x (goal {GOAL}x), "
        f"{_median(ours, 'processor') / _median(theirs, 'processor'):.2f}x of processors, "
        f"{_median(ours, 'epochs') / _median(theirs, 'epochs'):.2f}x of epochs\n"
    )
    as_good = True
    if len(ours) >= _LEAST_ROUNDS:
        one, other = ([result["best"] for result in results] for results in (ours, theirs))
        better = statistics.mean(one) - statistics.mean(other)
        error = ((statistics.variance(one) + statistics.variance(other)) / len(one)) ** 0.5
        as_good = better >= -2 * error
        sys.stdout.write(f"best accuracy beside {fastest}: {better:+.4f}, standard error {error:.4f}\n")
    return beside <= GOAL and as_good


if __name__ == "__main__":
    sys.exit(main())

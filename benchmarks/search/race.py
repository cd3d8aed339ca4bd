"""A search of short trials, from the command to the best model on disk, beside Ray Tune and Optuna.

    python benchmarks/search/race.py [--rounds 1] [--only resolute optuna]

16 trials of examples/digits train for up to 16 epochs on 2 slots and write a checkpoint an epoch. Each
contender is a command of its own with an empty folder; for Resolute that includes ``resolute up``, and the
example's config is taken as it is, or with ``environment.warm_start: false`` (``resolute-off``). Beside the
wall time stands what all its processes took of the processors, which other work on the machine changes less.
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
_PR_SET_CHILD_SUBREAPER = 36
CONTENDERS: dict[str, list[str]] = {
    "resolute": [sys.executable, "_resolute.py", "FOLDER", "auto"],
    "resolute-off": [sys.executable, "_resolute.py", "FOLDER", "off"],
    "optuna": [sys.executable, "_optuna.py", "FOLDER"],
    "ray": [str(RAY), "_ray.py", "FOLDER"],
}


def race(name: str, folder: Path) -> dict[str, Any]:
    """Runs one contender; returns what it says, with the seconds in all and without ``up``."""
    command = [word.replace("FOLDER", str(folder / name)) for word in CONTENDERS[name]]
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
    medians: dict[str, float] = {}
    processor: dict[str, float] = {}
    for name in names:
        results = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory(prefix="resolute-race-") as folder:
                results.append(race(name, Path(folder)))
        medians[name] = statistics.median(result["seconds"] for result in results)
        without = statistics.median(result["without_up"] for result in results)
        processor[name] = statistics.median(result["processor"] for result in results)
        last = results[-1]
        sys.stdout.write(
            f"{name:14} {medians[name]:6.1f} s, {without:6.1f} s without up, "
            f"{processor[name]:.1f} s of processors; {last['trials']} trials, "
            f"{last['epochs']} epochs, best accuracy {last['best']:.4f}\n"
        )
        sys.stdout.flush()
    peers = [name for name in names if not name.startswith("resolute")]
    if peers and "resolute" in medians:
        fastest = min(peers, key=medians.__getitem__)
        beside = medians["resolute"] / medians[fastest]
        sys.stdout.write(
            f"resolute beside {fastest}: {beside:.2f}x (goal {GOAL}x), "
            f"{processor['resolute'] / processor[fastest]:.2f}x of processors\n"
        )
        return 0 if beside <= GOAL else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

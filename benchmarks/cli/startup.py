"""How long the command line and the SDK take to start, beside what gRPC alone takes.

    python benchmarks/cli/startup.py [--runs N] [--json]

Prints the median of each over N fresh interpreters, and its ratio to ``python -c "import grpc"``, which says
more than seconds do on machines of different speed. Exits 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

BASELINE = "import grpc"


@dataclass(frozen=True)
class Case:
    """Something whose start is measured."""

    name: str
    script: str
    limit: float
    """Most seconds that it may take."""


@dataclass(frozen=True)
class Result:
    """What a case took."""

    name: str
    seconds: float
    """Median."""
    ratio: float
    """Seconds over those of the baseline."""
    limit: float


_HELP = "import sys; sys.argv[:] = ['resolute', '--help']; from resolute.cli.main import main; main()"
CASES = (
    Case("resolute --help", _HELP, 0.4),
    Case("import resolute", "import resolute", 0.3),
    Case("import resolute.client", "import resolute.client", 1.0),
)


def seconds(script: str) -> float:
    """Runs a script in a fresh interpreter and returns how long it took."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def measure(runs: int) -> list[Result]:
    """Measures every case, in turns with the baseline, so that a busy moment hits all alike."""
    scripts = {case.name: case.script for case in CASES} | {BASELINE: BASELINE}
    taken: dict[str, list[float]] = {name: [] for name in scripts}
    for script in scripts.values():
        seconds(script)  # fills the caches of files and of byte code
    for _ in range(runs):
        for name, script in scripts.items():
            taken[name].append(seconds(script))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    return [
        Result(case.name, medians[case.name], medians[case.name] / medians[BASELINE], case.limit)
        for case in CASES
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what was measured; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=15, help="fresh interpreters for each (default: 15)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    results = measure(options.runs)
    if options.json:
        sys.stdout.write(json.dumps([asdict(result) for result in results]) + "\n")
    else:
        for result in results:
            sys.stdout.write(
                f"{result.name:24} {result.seconds * 1000:6.0f} ms  "
                f"{result.ratio:5.2f} x {BASELINE!r}  (limit {result.limit * 1000:.0f} ms)\n"
            )
    return 0 if all(result.seconds <= result.limit for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())

"""How long after a submit the first line of user code runs, beside what Python itself needs to get there.

    python benchmarks/launch/first_line.py [--rounds 5]

The script imports what training scripts import and tells the time. It is started by ``python``, and through a
cluster of its own: submitted by the Python client (the time until its config and code are accepted included).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from resolute.client import Client

MOST_SECONDS = 1.5
SCRIPT = """
import pathlib, sys, time
import numpy, torch
import determined as det
from determined import core

pathlib.Path(sys.argv[1]).write_text(str(time.time()))
"""
CONFIG = {"searcher": {"name": "single", "metric": "x", "max_length": 1}, "max_restarts": 0}
COMPAT = Path(__file__).resolve().parents[2] / "compat"


def by_python(code: Path, told: Path) -> float:
    environ = {**os.environ, "PYTHONPATH": str(COMPAT)}
    begun = time.time()
    subprocess.run([sys.executable, "train.py", str(told)], cwd=code, env=environ, check=True)
    return float(told.read_text()) - begun


def by_submit(client: Client, code: Path, told: Path) -> float:
    told.unlink(missing_ok=True)
    begun = time.time()
    config = {**CONFIG, "name": "first-line", "entrypoint": ["python3", "train.py", str(told)]}
    client.create_experiment(config, str(code)).wait(interval=0.2)
    return float(told.read_text()) - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="resolute-bench-first-line-") as text:
        folder = Path(text)
        code, told = folder / "code", folder / "told"
        code.mkdir()
        (code / "train.py").write_text(SCRIPT)
        os.environ["RESOLUTE_HOME"] = str(folder / "home")
        resolute = [str(Path(sys.executable).with_name("resolute"))]
        subprocess.run([*resolute, "up", "--detach", "--slots", "2"], check=True, stdout=subprocess.DEVNULL)
        try:
            with Client() as client:
                by_submit(client, code, told)  # warms the disk's cache
                pairs = [(by_python(code, told), by_submit(client, code, told)) for _ in range(rounds)]
        finally:
            subprocess.run([*resolute, "down"], check=True, stdout=subprocess.DEVNULL)
    python, submitted = (statistics.median(times) for times in zip(*pairs, strict=True))
    added = statistics.median(ours - bare for bare, ours in pairs)
    sys.stdout.write(
        f"python: {python:.2f} s; from a submit: {submitted:.2f} s; {added:+.2f} s (at most {MOST_SECONDS})\n"
    )
    return 0 if added <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())

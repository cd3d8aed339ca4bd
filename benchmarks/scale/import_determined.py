"""What the import of a large Determined cluster takes, with the stand-in of that cluster beside it.

    python benchmarks/scale/import_determined.py [--experiments N] [--trials N] [--points N] [--json]

By default 10 000 trials of 100 experiments, two million reports and 20 000 checkpoints of three stores. Each
figure stands beside its limit; the program fails if one is missed.

- ``import``: seconds of `resolute import determined`
- ``command memory``, ``cluster memory``: peaks of the command and of the control plane, in MiB
- ``command processor``, ``cluster processor``, ``stand-in processor``:
  seconds of processor time
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import resource
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support.old_cluster.content import Content
from support.old_cluster.master import OldMaster, serving_old_master

from benchmarks.embedded import Embedded, embedded

_LIMITS = {"import": 600.0, "command memory": 1024.0, "cluster memory": 1024.0}


def main() -> None:
    """Imports once, and compares with the limits."""
    parser = argparse.ArgumentParser(description="the import of a large cluster")
    parser.add_argument("--experiments", type=int, default=100)
    parser.add_argument("--trials", type=int, default=100, help="of each experiment")
    parser.add_argument("--points", type=int, default=182, help="training reports of each trial")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    content = Content(
        experiments=given.experiments, trials=given.trials, points=given.points, checkpoints=2, lines=2
    )
    with embedded() as cluster:
        found = _measure(cluster, content)
    if given.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            limit = f"   limit {_LIMITS[name]:.0f}" if name in _LIMITS else ""
            print(f"{name:20} {value:8.1f}{limit}")
    if any(found[name] > limit for name, limit in _LIMITS.items()):
        sys.exit(1)


def _measure(cluster: Embedded, content: Content) -> dict[str, float]:
    here, there = multiprocessing.Pipe()
    master = multiprocessing.Process(target=_serve, args=(content, there), name="old-master")
    master.start()
    try:
        address = here.recv()
        password = cluster.home / "password"
        password.write_text("")
        command = [str(Path(sys.executable).with_name("resolute")), "import", "determined", address]
        began, spent = time.monotonic(), cluster.processor_seconds()
        subprocess.run(
            [*command, "--password-file", str(password)],
            env={**os.environ, "RESOLUTE_HOME": str(cluster.home)},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        seconds, spent = time.monotonic() - began, cluster.processor_seconds() - spent
        command_spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    finally:
        here.send(None)
        master.join()
    all_spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = Path(f"/proc/{cluster.pid}/status").read_text()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    return {
        "import": seconds,
        "command memory": command_spent.ru_maxrss / 1024,
        "cluster memory": int(peak[1]) / 1024 if peak else 0.0,
        "command processor": _processor(command_spent),
        "cluster processor": spent,
        "stand-in processor": _processor(all_spent) - _processor(command_spent),
    }


def _processor(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime


def _serve(content: Content, connection: Connection) -> None:
    with serving_old_master(OldMaster(content)) as address:
        connection.send(address)
        connection.recv()


if __name__ == "__main__":
    main()

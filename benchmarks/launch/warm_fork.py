"""How long a fork of a parked process takes to the first line of its script, beside a new interpreter.

    python benchmarks/launch/warm_fork.py [--rounds 20]

Both run the same script, which imports torch and tells the time. Limit: 0.15 s from the request.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from resolute_launch.warm import protocol
from resolute_launch.warm.environment import shared_environment
from resolute_launch.warm.fork.limits import inherited
from resolute_launch.warm.fork.process import ForkedProcess
from resolute_launch.warm.process_image import PADDING, placeholder

MOST_SECONDS = 0.15
SCRIPT = "import torch, time, os, pathlib\npathlib.Path('told').write_text(str(time.time()))\n"


def by_fork(parked: Path, work: Path) -> float:
    gate, run = work.parent / "gate", work.parent
    begun = time.time()
    connection = protocol.connect(parked)
    assert connection is not None
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(connection, [protocol.FORK], [1, 2, theirs.fileno()])
    process = ForkedProcess(int(protocol.receive_message(connection)["pid"]), connection, ours)
    start = {
        "work": str(work),
        "gate": str(gate),
        "run": str(run),
        "shell": ["/bin/false"],
        "words": ["python3", "train.py"],
        "script": "train.py",
        "module": "",
        "arguments": [],
        "environment": {**shared_environment(os.environ), "RESOLUTE_RUN_DIR": str(run)},
        "limits": inherited(),
    }
    refusal = process.prepare(start)
    assert not refusal, refusal
    process.release()
    assert process.reap() == 0
    return float((work / "told").read_text()) - begun


def by_python(work: Path) -> float:
    begun = time.time()
    subprocess.run([sys.executable, "train.py"], cwd=work, check=True)
    return float((work / "told").read_text()) - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="resolute-bench-warm-") as text:
        folder = Path(text)
        parked, work = folder / "parked", folder / "run" / "work"
        parked.mkdir()
        work.mkdir(parents=True)
        os.mkfifo(work.parent / "gate")
        (work / "train.py").write_text(SCRIPT)
        order = {"modules": ["torch"], "learns": False, "owner": os.getpid(), "idle_seconds": 600}
        (parked / protocol.ORDER).write_text(json.dumps(order))
        process = subprocess.Popen(
            [sys.executable, "-m", "resolute_launch.warm", str(parked), " " * PADDING],
            cwd=parked,
            env={**shared_environment(os.environ), **placeholder()},
        )
        while not (parked / protocol.SOCKET).exists():
            assert process.poll() is None
            time.sleep(0.02)
        forks = statistics.median(by_fork(parked, work) for _ in range(rounds))
        python = statistics.median(by_python(work) for _ in range(3))
        process.terminate()
        process.wait()
    sys.stdout.write(
        f"first line: {forks:.3f} s by a fork, {python:.3f} s by Python; limit {MOST_SECONDS} s\n"
    )
    return int(forks > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())

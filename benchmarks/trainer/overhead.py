"""What the trainer adds to a plain loop for every batch, beside Lightning and Hugging Face's Trainer.

One process runs all loops in turns; each round gives a difference to the plain loop of the same round, and
the median of the rounds counts. ``pip install '.[trainers]'`` installs the peers; missing ones are left out.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

MAX_MICROSECONDS = 50.0
MAX_RATIO = 1.02
ROUNDS = 7
STEPS = 400
WARM = 50
SLOW_ROUNDS = 300
"""How often a pass computes the same again, for steps of about 10 ms."""
SLOW_STEPS = 60
PEERS = {"lightning": "lightning", "hugging_face": "transformers"}


def rounds(names: list[str], *, repeats: int, steps: int, count: int) -> dict[str, list[tuple[float, float]]]:
    from _contenders import seconds_per_step

    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for number in range(count):
        order = names if number % 2 == 0 else list(reversed(names))
        for name in order:
            warm = min(WARM, steps // 4)
            times[name].append(seconds_per_step(name, steps=steps, warm=warm, rounds=repeats))
    return times


def alone(name: str) -> None:
    """In a fresh process: time until the first batch, and the most memory."""
    from _contenders import CONTENDERS, Stopwatch

    begun = time.perf_counter()
    model = Stopwatch()
    CONTENDERS[name](model, 20)
    # Not getrusage(): what that counts begins with the memory of the process that started this one.
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    measured = {"first": model.times[0][0] - begun, "memory": int(peak.split()[1]) / 1024}
    sys.stderr.write(json.dumps(measured) + "\n")


def in_a_process(name: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--alone", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, float] = json.loads(done.stderr.strip().splitlines()[-1])
    return measured


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    torch.set_num_threads(1)
    names = ["plain", "resolute"]
    names += [name for name, package in PEERS.items() if importlib.util.find_spec(package) is not None]
    fast = rounds(names, repeats=1, steps=STEPS, count=ROUNDS)
    wall, work = (statistics.median(times) * 1e6 for times in zip(*fast["plain"], strict=True))
    say(f"plain loop: {work:.0f} us of the processor a batch ({wall:.0f} us on the wall)")
    added = {}
    for name in names[1:]:
        pairs = list(zip(fast[name], fast["plain"], strict=True))
        wall, work = (statistics.median(ours[k] - plain[k] for ours, plain in pairs) * 1e6 for k in (0, 1))
        added[name] = work
        say(f"{name}: {work:+.0f} us a batch ({wall:+.0f} us on the wall)")
    slow = rounds(["plain", "resolute"], repeats=SLOW_ROUNDS, steps=SLOW_STEPS, count=ROUNDS)
    ratio = statistics.median(a[1] / b[1] for a, b in zip(slow["resolute"], slow["plain"], strict=True))
    step = statistics.median(work for _, work in slow["plain"]) * 1e3
    say(f"resolute at steps of {step:.0f} ms: {ratio:.4f} times the plain loop")
    for name in names:
        measured = in_a_process(name)
        say(f"{name} alone: first batch after {measured['first']:.2f} s, {measured['memory']:.0f} MiB")
    peers = [added[name] for name in PEERS if name in added]
    good = added["resolute"] <= MAX_MICROSECONDS and ratio <= MAX_RATIO
    return 0 if good and all(added["resolute"] < peer for peer in peers) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        alone(sys.argv[2])
    else:
        sys.exit(main())

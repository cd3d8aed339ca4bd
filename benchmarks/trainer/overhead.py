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
ROUNDS = 15
STEPS = 300
WARM = 50
SLOW_ROUNDS = 9
SLOW_STEPS = 100
SLOW_SECONDS = 0.01
"""What a step shall take for the second comparison."""
REPEATS = 100
"""How often a pass computes the same again to find out how often it must for that."""
PEERS = {"lightning": "lightning", "hugging_face": "transformers"}

Times = dict[str, list[tuple[float, float]]]
"""Seconds a batch by the clock on the wall and of the processor, for each loop and round."""


def rounds(names: list[str], *, repeats: int, steps: int, count: int) -> Times:
    """Runs the loops in turns, every other round backwards."""
    from _contenders import seconds_per_step

    times: Times = {name: [] for name in names}
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


def added(times: Times, name: str) -> tuple[float, float]:
    """Median over the rounds of what a loop adds to the plain one: seconds on the wall, of the processor."""
    pairs = list(zip(times[name], times["plain"], strict=True))
    wall, work = (statistics.median(ours[k] - plain[k] for ours, plain in pairs) for k in (0, 1))
    return wall, work


def ratio(times: Times, name: str) -> float:
    """Median over the rounds of the processor's time, in terms of the plain loop's."""
    return statistics.median(a[1] / b[1] for a, b in zip(times[name], times["plain"], strict=True))


def compare_overhead(names: list[str]) -> dict[str, float]:
    """Prints what each loop adds to a batch; returns it in microseconds of the processor."""
    times = rounds(names, repeats=1, steps=STEPS, count=ROUNDS)
    wall, work = (statistics.median(column) * 1e6 for column in zip(*times["plain"], strict=True))
    say(f"plain loop: {work:.0f} us of the processor a batch ({wall:.0f} us on the wall)")
    overhead = {}
    for name in names[1:]:
        wall, work = added(times, name)
        overhead[name] = work * 1e6
        say(f"{name}: {work * 1e6:+.0f} us a batch ({wall * 1e6:+.0f} us on the wall)")
    return overhead


def compare_slow_steps(names: list[str]) -> dict[str, float]:
    """Prints and returns how much longer each loop takes for steps of about 10 ms."""
    (seconds,) = rounds(["plain"], repeats=REPEATS, steps=SLOW_STEPS, count=1)["plain"]
    repeats = max(1, round(REPEATS * SLOW_SECONDS / seconds[1]))
    times = rounds(names, repeats=repeats, steps=SLOW_STEPS, count=SLOW_ROUNDS)
    step = statistics.median(work for _, work in times["plain"]) * 1e3
    ratios = {name: ratio(times, name) for name in names[1:]}
    for name, found in ratios.items():
        say(f"{name} at steps of {step:.0f} ms: {found:.4f} times the plain loop")
    return ratios


def compare_starts(names: list[str]) -> None:
    """Prints what each loop needs in a process of its own: time to the first batch, and memory."""
    plain = in_a_process("plain")
    for name in names:
        measured = plain if name == "plain" else in_a_process(name)
        say(
            f"{name} alone: first batch after {measured['first']:.2f} s "
            f"({measured['first'] / plain['first']:.2f} times the plain loop), "
            f"{measured['memory']:.0f} MiB ({measured['memory'] - plain['memory']:+.0f})"
        )


def main() -> int:
    torch.set_num_threads(1)
    names = ["plain", "resolute"]
    names += [name for name, package in PEERS.items() if importlib.util.find_spec(package) is not None]
    for name in PEERS.keys() - set(names):
        say(f"absent: {name}; pip install '.[trainers]' installs it")
    overhead = compare_overhead(names)
    ratios = compare_slow_steps(names)
    compare_starts(names)
    good = overhead["resolute"] <= MAX_MICROSECONDS and ratios["resolute"] <= MAX_RATIO
    below = all(mine["resolute"] < mine[name] for mine in (overhead, ratios) for name in names[2:])
    return 0 if good and below else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        alone(sys.argv[2])
    else:
        sys.exit(main())

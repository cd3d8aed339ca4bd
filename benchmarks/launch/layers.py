"""What each layer costs over the framework's own launcher: until user code, until its first step, a step.

    python benchmarks/launch/layers.py [--rounds 7] [--steps 2000]

Two ranks on this machine, without a cluster. The launcher alone and the layer around it take turns at being
first, and each round gives one difference; beside the median of the rounds stand the least and the most of
them, which tell how much of it is noise. Frameworks that are not installed are left out; ``make distributed``
installs them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

RANKS = Path(__file__).with_name("_ranks.py")
MOST_SECONDS = 1.0
"""A layer is an interpreter above the launcher and one above each rank: a few tenths of a second."""
MOST_STEP_RATIO = 1.05
FEWEST_STEPS = 20
"""Two blocks of lines, of which the first does not count."""


def launchers(port: int) -> Mapping[str, tuple[str, Sequence[str]]]:
    """Of each framework: the module of its launcher, and the words for two ranks."""
    return {
        "torch_distributed": ("torch.distributed.run", ["--nproc_per_node", "2", "--master_port", str(port)]),
        "horovod": ("horovod.runner.launch", ["-np", "2", "-H", "localhost:2"]),
        "deepspeed": (
            "deepspeed.launcher.runner",
            ["--num_gpus", "2", "--no_local_rank", "--master_port", str(port)],
        ),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launched(name: str, *, layer: bool, steps: int) -> dict[str, float]:
    """Launches once; seconds until user code and until the end of the first step, and seconds of a step."""
    module, words = launchers(free_port())[name]
    python = [] if not layer and name != "horovod" else [sys.executable]
    with tempfile.TemporaryDirectory() as folder:
        script = [*python, str(RANKS), str(Path(folder) / "times"), str(steps)]
        command = [sys.executable, "-m", module, *words, *script]
        if layer:
            command = [sys.executable, "-m", f"resolute_launch.{name}", *words, "--", *script]
        environ = {**os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", "PYTHONUNBUFFERED": "1"}
        begun = time.time()
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
        times = json.loads((Path(folder) / "times").read_text())
    return {"user code": times["began"] - begun, "first step": times["first"] - begun, "step": times["step"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7, help="launches of each kind")
    parser.add_argument("--steps", type=int, default=2000, help="steps of each launch")
    options = parser.parse_args()
    good = True
    for name, (module, _) in launchers(0).items():
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            sys.stdout.write(f"absent: {name}; make .venv/.distributed installs it\n")
            continue
        launched(name, layer=True, steps=FEWEST_STEPS)  # warms the disk's cache
        times: dict[bool, list[dict[str, float]]] = {False: [], True: []}
        for number in range(options.rounds):
            # Who comes second finds another machine, if only a warmer one.
            for layer in (False, True) if number % 2 == 0 else (True, False):
                times[layer].append(launched(name, layer=layer, steps=options.steps))
        good &= tell(name, times[False], times[True])
    return 0 if good else 1


def tell(name: str, alone: list[dict[str, float]], layered: list[dict[str, float]]) -> bool:
    """Prints the medians; tells whether the layer is within its limits."""
    pairs = list(zip(alone, layered, strict=True))
    base = {key: statistics.median(times[key] for times in alone) for key in alone[0]}
    for key in ("user code", "first step"):
        added = [ours[key] - bare[key] for bare, ours in pairs]
        sys.stdout.write(
            f"{name}: {base[key]:.2f} s until {key} by the launcher alone, {statistics.median(added):+.2f} s "
            f"by the layer ({min(added):+.2f} to {max(added):+.2f})\n"
        )
    ratios = [ours["step"] / bare["step"] for bare, ours in pairs]
    ratio = statistics.median(ratios)
    sys.stdout.write(
        f"{name}: {base['step'] * 1e3:.2f} ms a step, {ratio:.3f} times that by the layer "
        f"({min(ratios):.3f} to {max(ratios):.3f})\n"
    )
    sys.stdout.flush()
    return statistics.median(added) <= MOST_SECONDS and ratio <= MOST_STEP_RATIO


if __name__ == "__main__":
    sys.exit(main())

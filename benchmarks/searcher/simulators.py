"""How fast a whole search is simulated in virtual time, beside Syne Tune's simulator.

    python benchmarks/searcher/simulators.py [--trials N] [--peer-trials N]

Both play asynchronous halving on rungs at 1, 4 and 16 over two hyperparameters, on 16 slots, with curves of
one shape. Trials a second of processor time, each in a process of its own. Syne Tune has an environment of
its own; RESOLUTE_BENCH_SYNE_TUNE names the interpreter of another one:

    python3 -m venv .cache/syne-tune && .cache/syne-tune/bin/pip install --no-deps syne-tune==0.16.0
    .cache/syne-tune/bin/pip install dill fastparquet h5py huggingface_hub pandas psutil scikit-learn
    .cache/syne-tune/bin/pip install sortedcontainers tqdm

What else it depends on is of surrogates, which neither side has here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.standalone import say
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute_searcher.planning.curves import synthetic_curves
from resolute_searcher.planning.simulation import simulate
from resolute_searcher.wire.spec import spec_from

_HERE = Path(__file__).resolve().parent
_PEER = _HERE.parents[1] / ".cache" / "syne-tune" / "bin" / "python"
_SLOTS = 16
_GOAL = 2.0
"""Least ratio of our trials a second to theirs."""


def asked(trials: int) -> spec_pb.SearchSpec:
    """The search."""
    axis = spec_pb.Hyperparameter(double_range=spec_pb.DoubleRange(minval=0.0, maxval=1.0))
    return spec_pb.SearchSpec(
        metric="loss",
        smaller_is_better=True,
        seed=7,
        space=spec_pb.Space(hyperparameters={"x": axis, "y": axis}),
        async_halving=spec_pb.AsyncHalvingMethod(
            num_rungs=3,
            max_length=16,
            max_trials=trials,
            divisor=4.0,
            max_concurrent_trials=_SLOTS,
            stop_once=True,
        ),
    )


def ours(trials: int) -> float:
    """Trials a second of processor time."""
    spec = spec_from(asked(trials))
    began = time.process_time()
    played = simulate(spec, synthetic_curves(spec), slots=_SLOTS)
    return len(played.trials) / (time.process_time() - began)


def main() -> int:
    """Prints what was measured; returns 1 when the goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--peer-trials", type=int, default=1000)
    options = parser.parse_args()
    rate = ours(options.trials)
    say(f"ours: {options.trials} trials, {rate:,.0f} trials/s")
    python = Path(os.environ.get("RESOLUTE_BENCH_SYNE_TUNE") or _PEER)
    if not python.exists():
        say("absent: Syne Tune; see the top of this file for how it is installed")
        return 0
    command = [str(python), str(_HERE / "_syne_tune.py"), str(options.peer_trials), str(_SLOTS)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    peer = json.loads(told.splitlines()[-1])
    theirs = peer["trials"] / peer["seconds"]
    say(f"Syne Tune {peer['version']}: {peer['trials']} trials, {theirs:,.0f} trials/s")
    say(f"ours / Syne Tune {rate / theirs:.1f} x   (goal {_GOAL:g} x)")
    return 0 if rate >= _GOAL * theirs else 1


if __name__ == "__main__":
    sys.exit(main())

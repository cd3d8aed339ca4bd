"""Latency of the collectives between processes of one machine.

    python benchmarks/collectives/allgather.py [--ranks 2 4 8] [--rounds 500] [--signed]

Each line is one job of real processes, measured on its rank 0: the median and the 95th percentile of a call,
in microseconds. A machine with fewer cores than ranks measures its scheduler too: only two ranks have a
limit, 1 ms for a collective of an int.
"""

import argparse
import os
import secrets
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from resolute.core.distributed import DistributedContext

MEGABYTE = 1024 * 1024
WARM_UP = 20
MOST_US = 1000.0


def measure(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and 95th percentile of a call, in microseconds."""
    for _ in range(WARM_UP):
        call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1000)
    return statistics.median(times), statistics.quantiles(times, n=20)[-1]


def work(rounds: int) -> None:
    """What every rank does; rank 0 prints."""
    import numpy as np

    with DistributedContext.from_torch_distributed() as context:
        large = np.zeros(MEGABYTE, dtype=np.uint8)
        cases: list[tuple[str, Callable[[], object], int]] = [
            ("allgather of an int", lambda: context.allgather(context.rank), rounds),
            ("allgather_local of an int", lambda: context.allgather_local(context.rank), rounds),
            ("gather of an int", lambda: context.gather(context.rank), rounds),
            # The allgather keeps the chief from running ahead of the others.
            ("broadcast and allgather", lambda: (context.broadcast(1), context.allgather(None)), rounds),
            ("allgather of 1 MiB", lambda: context.allgather(large), max(20, rounds // 10)),
        ]
        slow = []
        for name, call, count in cases:
            median, tail = measure(call, count)
            if (context.size, context.rank) == (2, 0) and name.endswith("of an int") and median > MOST_US:
                slow.append(name)
            if context.rank == 0:
                sys.stdout.write(f"{context.size:>5}  {name:<28}{median:>12.0f}{tail:>12.0f}\n")
                sys.stdout.flush()
    if slow:
        sys.exit(f"missed the limit of {MOST_US:.0f} us: {', '.join(slow)}")


def run_job(size: int, rounds: int, *, signed: bool) -> None:
    """Runs a job of this many processes on free ports."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = os.environ | {
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "RESOLUTE_COLLECTIVE_PORTS": f"{port},{port}",
        # One thread a rank: the ranks are what is measured.
        "OMP_NUM_THREADS": "1",
    }
    if signed:
        environ["RESOLUTE_COLLECTIVE_KEY"] = secrets.token_hex()
    command = [sys.executable, __file__, "--worker", "--rounds", str(rounds)]
    ranks = [
        subprocess.Popen(command, env=environ | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(size)
    ]
    failed = [rank for rank, process in enumerate(ranks) if process.wait()]
    if failed:
        raise SystemExit(f"ranks {failed} failed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8], help="sizes of the jobs")
    parser.add_argument("--rounds", type=int, default=500, help="calls measured in each")
    parser.add_argument("--signed", action="store_true", help="sign every message with a key")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.rounds)
        return
    sys.stdout.write(f"{'ranks':>5}  {'collective':<28}{'median us':>12}{'p95 us':>12}\n")
    sys.stdout.flush()
    for size in options.ranks:
        run_job(size, options.rounds, signed=options.signed)


if __name__ == "__main__":
    main()

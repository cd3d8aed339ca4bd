"""How long after the control plane was killed the reports of four running trials are stored again.

    python benchmarks/recovery/after_kill.py [--rounds 5]

The control plane is killed and started again at once. The time runs from the kill until a report that was
made after it is stored for each of the trials: the start of Python and of all services is part of it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.recovery._busy import TRIALS, BusyCluster, busy_cluster

MOST_SECONDS = 5.0


def seconds_until_reports_flow(cluster: BusyCluster) -> float:
    cluster.kill()
    killed_at, begin = time.time(), time.monotonic()
    cluster.resolute("up", "--detach", "--slots", str(TRIALS))
    cluster.wait(lambda: len(cluster.reported_after(killed_at)) == TRIALS)
    return time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with busy_cluster() as cluster:
        cluster.submit()
        times = [seconds_until_reports_flow(cluster) for _ in range(rounds)]
    median = statistics.median(times)
    sys.stdout.write(
        f"reports of {TRIALS} trials flow again {median:.2f} s after a kill, at worst {max(times):.2f} s "
        f"(at most {MOST_SECONDS:g})\n"
    )
    return 0 if median <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())

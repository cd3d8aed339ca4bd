"""How long a backup takes while trials report, beside the same backup while nothing is written.

    python benchmarks/recovery/backup.py [--rounds 5] [--megabytes 256]

The home has four databases of that size together. It is backed up while four trials report and print 200
times a second each, and after they have ended. What is measured is the copy, not the start of the command.
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import statistics
import sys
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.recovery._busy import BusyCluster, busy_cluster
from resolute.client.connection.home import Home
from resolute_embedded.home.backups import back_up
from resolute_embedded.home.state_directory import StateDirectory

MOST_RATIO = 2.0
_FILLED = ("metrics", "logs", "experiments", "checkpoints")


def fill(cluster: BusyCluster, megabytes: int) -> None:
    for name in _FILLED:
        path = cluster.home / "databases" / f"{name}.sqlite"
        with closing(sqlite3.connect(path, timeout=60)) as connection:
            connection.execute("CREATE TABLE filler (content BLOB)")
            rows = [()] * (megabytes // len(_FILLED))
            connection.executemany("INSERT INTO filler VALUES (randomblob(1048576))", rows)
            connection.commit()


def seconds_of_backup(cluster: BusyCluster) -> float:
    destination = cluster.home.with_name("backup")
    begin = time.monotonic()
    back_up(StateDirectory(Home(cluster.home)), destination)
    seconds = time.monotonic() - begin
    shutil.rmtree(destination)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=256)
    options = parser.parse_args()
    with busy_cluster() as cluster:
        fill(cluster, options.megabytes)
        seconds_of_backup(cluster)  # warms the disk's cache
        cluster.submit()
        busy = statistics.median(seconds_of_backup(cluster) for _ in range(options.rounds))
        cluster.kill_trials()
        quiet = statistics.median(seconds_of_backup(cluster) for _ in range(options.rounds))
    ratio = busy / quiet
    sys.stdout.write(
        f"{options.megabytes} MB: quiet {quiet:.2f} s, with 4 busy trials {busy:.2f} s; "
        f"ratio {ratio:.2f} (at most {MOST_RATIO:g})\n"
    )
    return 0 if ratio <= MOST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())

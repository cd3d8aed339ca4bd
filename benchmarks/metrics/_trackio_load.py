"""Logs to trackio on this machine; runs in an interpreter that has trackio.

Started by ``beside_trackers.py``; prints one line of JSON. Its SQLite is told to fsync each commit, as ours
does: by itself it would not.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from importlib.metadata import version
from typing import Any

NAMES = [f"metric_{number}" for number in range(10)]


def measure(reports: int) -> dict[str, float | str]:
    """Logs reports until the last one is stored."""
    import trackio  # type: ignore[import-not-found,unused-ignore]

    run: Any = trackio.init(project="bench", name="run", embed=False, auto_log_gpu=False, auto_log_cpu=False)
    spent = []
    began = time.perf_counter()
    for step in range(reports):
        metrics = dict.fromkeys(NAMES, step * 0.5)
        before = time.perf_counter()
        run.log(metrics, step=step)
        spent.append(time.perf_counter() - before)
    run.finish()
    took = time.perf_counter() - began
    return {
        "version": version("trackio"),
        "batch_values": reports * len(NAMES) / took,
        "async_call_us": statistics.median(spent) * 1e6,
    }


def main() -> None:
    """Prints what was measured."""
    with tempfile.TemporaryDirectory(prefix="resolute-bench-trackio-") as folder:
        os.environ |= {"TRACKIO_DIR": folder, "TRACKIO_SQLITE_SYNCHRONOUS": "FULL", "HF_HUB_OFFLINE": "1"}
        sys.stdout.write("\n" + json.dumps(measure(int(sys.argv[1]))) + "\n")
    # Its own threads would wait for a network that is not there.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

"""A thousand jobs that do nothing: submitted and ended by Resolute, beside a real Slurm.

    python benchmarks/launch/no_op_jobs.py [--jobs 1000]

``sbatch --wrap=true`` for each job, on a Slurm whose one node in use has as many processors as the cluster
of Resolute has slots; ``tools/install_engines.sh`` installs it. Ours are experiments of one trial whose
entrypoint is ``true``, submitted one by one with the Python client and run by the engine of processes. Both
accept a job durably before the next one is submitted. Measured are the jobs a second that are accepted, and
the jobs a second from the first submit until the last job has ended.

Slurm starts a job as one process; a trial of ours has a supervisor, a log and a record of how it ended. The
goal for the end is therefore a share.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.daemons.slurm import SlurmCluster, running_slurm
from support.waiting import wait_until

from benchmarks.embedded import Embedded, embedded
from benchmarks.standalone import say
from resolute.client import Client

_SLOTS = 4
_MOST_SECONDS = 3600.0
_LEAST_ACCEPTED = 1.0
_LEAST_ENDED = 0.2
_CONFIG = {
    "name": "no-op",
    "entrypoint": ["true"],
    "searcher": {"name": "single", "metric": "x", "max_length": 1},
    "max_restarts": 0,
}


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Jobs a second."""

    accepted: float
    ended: float

    def line(self, name: str) -> str:
        """What a person reads."""
        return f"{name:10} {self.accepted:8.1f} jobs/s accepted   {self.ended:8.1f} jobs/s ended"


def by_slurm(slurm: SlurmCluster, jobs: int) -> Rates:
    """Submits jobs to Slurm until all have ended."""
    environment = {**os.environ, **slurm.environment}
    command = ["sbatch", "--output=/dev/null", "--nodelist=node0", "--wrap=true"]

    def none_left() -> bool:
        listed = subprocess.run(
            ["squeue", "--noheader", "--format=%i"],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return not listed.stdout.strip()

    begun = time.monotonic()
    for _ in range(jobs):
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    accepted = time.monotonic() - begun
    wait_until(none_left, what="the last job of Slurm", seconds=_MOST_SECONDS, pause=0.2)
    return Rates(accepted=jobs / accepted, ended=jobs / (time.monotonic() - begun))


def by_submits(cluster: Embedded, jobs: int) -> Rates:
    """Submits experiments until all have ended."""
    os.environ["RESOLUTE_HOME"] = str(cluster.home)
    with Client() as client:
        begun = time.monotonic()
        submitted = [client.create_experiment(_CONFIG) for _ in range(jobs)]
        accepted = time.monotonic() - begun
        for experiment in submitted:
            experiment.wait(interval=0.2)
    return Rates(accepted=jobs / accepted, ended=jobs / (time.monotonic() - begun))


def main() -> int:
    """Prints what was measured; returns 1 when a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1000)
    options = parser.parse_args()
    with embedded(slots=_SLOTS) as cluster:
        ours = by_submits(cluster, options.jobs)
    say(ours.line("ours"))
    try:
        with running_slurm() as slurm:
            theirs = by_slurm(slurm, options.jobs)
    except pytest.skip.Exception as absent:
        say(f"absent: Slurm; {absent}")
        return 0
    say(theirs.line("Slurm"))
    accepted, ended = ours.accepted / theirs.accepted, ours.ended / theirs.ended
    say(f"ours / Slurm, accepted {accepted:.2f} x   (goal {_LEAST_ACCEPTED:g} x)")
    say(f"ours / Slurm, ended    {ended:.2f} x   (goal {_LEAST_ENDED:g} x)")
    return 0 if accepted >= _LEAST_ACCEPTED and ended >= _LEAST_ENDED else 1


if __name__ == "__main__":
    sys.exit(main())

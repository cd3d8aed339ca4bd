"""What a long queue costs: a whole cluster with thousands of waiting trials of hundreds of experiments.

    python benchmarks/scale/long_queue.py [--experiments N] [--trials N] [--json]

One trial holds the only slot, the others wait. Each figure stands beside its limit; the program fails if one
is missed.

- ``list``: all experiments in one page; ``jobs``: the queue in order; ``trials``: one experiment's trials
- ``describe``: an experiment with its trials; ``trial``: one trial with its runs and why it waits
- ``pass``: the scheduler's look at the queue after a change of its order
- ``idle``: processor time of the control plane while nothing happens, as a share of a core
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import grpc
from google.protobuf.field_mask_pb2 import FieldMask

from benchmarks.embedded import Embedded, embedded
from benchmarks.standalone import say, seconds
from resolute.api.experiments.v1 import (
    cluster_service_pb2,
    cluster_service_pb2_grpc,
    experiment_pb2,
    experiments_service_pb2,
    experiments_service_pb2_grpc,
    job_pb2,
    jobs_service_pb2,
    jobs_service_pb2_grpc,
    trial_pb2,
    trials_service_pb2,
    trials_service_pb2_grpc,
)

_CONFIG = """
name: bench-{number}
entrypoint: sleep 3600
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}, y: {{type: int, minval: 1, maxval: 100}}}}
resources: {{priority: {priority}}}
searcher:
  {{name: random, metric: loss, max_length: 100, max_trials: {trials}, max_concurrent_trials: {trials}}}
"""
_REPEATS = 30
_IDLE_SECONDS = 30.0
_SUBMITTERS = 4


@dataclass(frozen=True)
class Figure:
    """One measurement."""

    name: str
    value: float
    limit: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether it is within its limit."""
        return self.value <= self.limit


def fill(running: Embedded, *, experiments: int, trials: int) -> float:
    """Submits experiments until all of their trials wait; returns the seconds that this took."""

    def all_wait() -> None:
        submit(running.channel, 0, trials=1, priority=1)
        submit_all(running.channel, experiments=experiments, trials=trials)

    return seconds(all_wait)


def submit(channel: grpc.Channel, number: int, *, trials: int, priority: int = 42) -> None:
    """Submits one experiment."""
    stub = experiments_service_pb2_grpc.ExperimentsServiceStub(channel)
    spec = experiments_service_pb2.ExperimentSpec(
        config_yaml=_CONFIG.format(number=number, trials=trials, priority=priority)
    )
    stub.CreateExperiment(
        experiments_service_pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
    )


def submit_all(channel: grpc.Channel, *, experiments: int, trials: int) -> None:
    """Submits experiments from 1 on, and waits until all of their trials wait."""
    each = trials // experiments
    with ThreadPoolExecutor(_SUBMITTERS) as pool:
        list(pool.map(partial(submit, channel, trials=each), range(1, experiments + 1)))
    while queued(channel) < each * experiments:
        time.sleep(0.5)


def queued(channel: grpc.Channel) -> int:
    """Trials that wait."""
    stub = cluster_service_pb2_grpc.ClusterServiceStub(channel)
    return int(stub.GetCluster(cluster_service_pb2.GetClusterRequest()).queued_trials)


def median_ms(work: Callable[[], Any]) -> float:
    """Median time of a call, after one that warms up."""
    work()
    return statistics.median(seconds(work) for _ in range(_REPEATS)) * 1000


def measure(running: Embedded, *, experiments: int) -> Iterator[Figure]:
    """Takes every figure."""
    lead = experiments_service_pb2_grpc.ExperimentsServiceStub(running.channel)
    trials = trials_service_pb2_grpc.TrialsServiceStub(running.channel)
    jobs = jobs_service_pb2_grpc.JobsServiceStub(running.channel)
    key = experiment_pb2.ExperimentKey(number=experiments // 2)
    listed = trials_service_pb2.ListTrialsRequest(experiment=key, page_size=1000)
    first = trials.ListTrials(listed).trials[0].number

    def list_all() -> None:
        page = lead.ListExperiments(experiments_service_pb2.ListExperimentsRequest(page_size=1000))
        assert len(page.experiments) == experiments + 1

    def describe() -> None:
        lead.GetExperiment(experiments_service_pb2.GetExperimentRequest(experiment=key))
        trials.ListTrials(listed)

    def trial() -> None:
        trial_key = trial_pb2.TrialKey(number=first)
        answer = trials.GetTrial(trials_service_pb2.GetTrialRequest(trial=trial_key))
        assert answer.trial.explanation

    yield Figure("list", median_ms(list_all), 100.0, "ms")
    yield Figure("jobs", median_ms(lambda: jobs.ListJobs(jobs_service_pb2.ListJobsRequest())), 100.0, "ms")
    yield Figure("trials", median_ms(lambda: trials.ListTrials(listed)), 50.0, "ms")
    yield Figure("describe", median_ms(describe), 50.0, "ms")
    yield Figure("trial", median_ms(trial), 50.0, "ms")
    yield Figure("pass", _pass_ms(running, jobs), 50.0, "ms")
    time.sleep(5.0)  # what the calls have set off comes to rest
    before = running.processor_seconds()
    time.sleep(_IDLE_SECONDS)
    used = running.processor_seconds() - before
    yield Figure("idle", 100.0 * used / _IDLE_SECONDS, 0.5, "% of a core")


def _pass_ms(running: Embedded, jobs: Any) -> float:
    taken = []
    for repeat in range(_REPEATS):
        key = experiment_pb2.ExperimentKey(number=2 + repeat)
        jobs.UpdateJob(
            jobs_service_pb2.UpdateJobRequest(
                experiment=key,
                job=job_pb2.Job(priority=50 + repeat % 2),
                update_mask=FieldMask(paths=["priority"]),
            )
        )
        time.sleep(0.1)
        taken.append(running.numbers()["resolute_scheduler_pass_seconds"])
    return statistics.median(taken) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--experiments", type=int, default=500)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    options = parser.parse_args()
    figures = []
    with embedded() as running:
        taken = fill(running, experiments=options.experiments, trials=options.trials)
        if not options.json:
            say(f"{options.trials} trials of {options.experiments} experiments wait after {taken:.0f} s")
        for figure in measure(running, experiments=options.experiments):
            figures.append(figure)
            if not options.json:
                share = figure.value / figure.limit
                say(f"{figure.name:<9} {figure.value:8.1f} {figure.unit:<11} {share:5.2f} of the limit")
    if options.json:
        say(json.dumps({"fill_seconds": taken, "figures": [asdict(figure) for figure in figures]}))
    if not all(figure.met for figure in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()

"""An engine that is away for long while trials run on it: nothing may be lost, and nothing begins again.

Run as ``make outage ENGINE=container SECONDS=3600``, on real daemons of ``container``, ``slurm`` or
``kubernetes``. While the daemon is away, one trial ends before the control plane is killed and started again
and one after that, another goes on, more wait for slots, and people submit experiments in both lives of the
control plane. After a failure the home is left for a look.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import grpc
from faults.harness.engines.engine import InterruptibleEngine
from faults.harness.engines.opened import opened
from faults.harness.fault_cluster import FaultCluster, fault_cluster
from faults.harness.held_experiment import HeldExperiment
from faults.harness.new_home import in_new_home
from faults.harness.service_queries import channel_to, problems_of, reports_of
from faults.harness.tally import Tally
from support.processes.clean_ending import end_cleanly
from support.waiting import wait_until

ENGINES = ("container", "slurm", "kubernetes")
_SLOTS = 4
_AT_ONCE = 3
"""Trials that run when the daemon goes: one for each part of the outage."""
_TRIALS = 6
_STEPS = 1800
"""Steps in the time of an outage."""
_SHORTEST_STEP_SECONDS = 0.2
_NOTICE_SECONDS = 600.0
"""How long anything may take that is not the outage itself."""
_LOOK_SECONDS = 0.5
_AWAY = "does not answer"
"""In what the cluster says of an engine that is away."""


@dataclass
class Outcome:
    """What was seen of one outage."""

    engine: str
    away_seconds: float = 0.0
    early_ends: int = 0
    """Trials that ended meanwhile and were known as completed before the daemon was back."""
    trials: int = 0
    restarts: int = 0
    tally: Tally = field(default_factory=Tally)

    def __str__(self) -> str:
        tally = self.tally
        summary = "; ".join(tally.violations) or "nothing is missing, doubled or left over"
        return (
            f"{self.engine} was away for {self.away_seconds:.0f} s: {self.trials} trials in {tally.runs} "
            f"runs, {self.restarts} restarts; {self.early_ends} ends were known before it was back; "
            f"{tally.reports} reports, {tally.checkpoints} checkpoints, {tally.lines} lines of which "
            f"{tally.unsaved_lines} are missing: {summary}"
        )


class Outage:
    """One outage of the engine of a cluster.

    Args:
        cluster: The cluster; it is up.
        engine: Its engine.
        outcome: Takes what is seen.
        seconds: How long the daemon is away.
    """

    def __init__(
        self, cluster: FaultCluster, engine: InterruptibleEngine, *, outcome: Outcome, seconds: float
    ) -> None:
        self._cluster = cluster
        self._engine = engine
        self._outcome = outcome
        self._seconds = seconds
        self._experiments: list[HeldExperiment] = []

    def run(self) -> None:
        """Goes through all of it.

        Raises:
            AssertionError: Something did not go on, or did not come back.
        """
        held = self._submit(trials=_TRIALS)
        _wait_until(lambda: len(held.reporting()) == _AT_ONCE, what="trials to run")
        with channel_to(self._cluster) as channel:
            with self._engine.away():
                self._go_through(held, channel)
            _wait_until(lambda: not _is_away(channel), what="the engine to be known as back")
        for experiment in self._experiments:
            experiment.let_go()
        for experiment in self._experiments:
            self._cluster.det("e", "wait", str(experiment.number), timeout=_NOTICE_SECONDS)
        self._judge()

    def _go_through(self, held: HeldExperiment, channel: grpc.Channel) -> None:
        """What happens while the daemon is away."""
        began = time.monotonic()
        first, second, last = held.reporting()
        self._expect_work(channel, of=(first, second, last))
        _sleep_until(began + self._seconds / 4)
        waiting = [self._submit(trials=1)]
        held.let_go(first)
        self._expect_end(first)
        _sleep_until(began + self._seconds / 2)
        self._cluster.kill()
        self._cluster.up()
        self._expect_work(channel, of=(second, last))
        _sleep_until(began + self._seconds * 3 / 4)
        waiting.append(self._submit(trials=1))
        held.let_go(second)
        self._expect_end(second)
        _sleep_until(began + self._seconds)
        self._expect_work(channel, of=(last,))
        assert len(held.reporting()) == _AT_ONCE, "a trial began although nobody could start it"
        assert not any(one.reporting() for one in waiting), (
            "a new experiment began although nobody could start it"
        )
        self._outcome.away_seconds = time.monotonic() - began

    def _submit(self, *, trials: int) -> HeldExperiment:
        experiment = HeldExperiment.submit(
            self._cluster,
            number=len(self._experiments) + 1,
            trials=trials,
            at_once=_AT_ONCE,
            step_seconds=max(self._seconds / _STEPS, _SHORTEST_STEP_SECONDS),
        )
        self._experiments.append(experiment)
        return experiment

    def _expect_work(self, channel: grpc.Channel, *, of: tuple[str, ...]) -> None:
        """The cluster says that its engine is away, and reports of its trials arrive all the same."""
        _wait_until(lambda: _is_away(channel), what="the engine to be known as away")
        status = self._cluster.run("resolute", "status")
        assert _AWAY in status.stdout + status.stderr, f"status says {status.stdout}"
        known = {trial: len(reports_of(channel, trial)) for trial in of}
        _wait_until(
            lambda: all(len(reports_of(channel, trial)) > count for trial, count in known.items()),
            what="reports of the trials that run",
        )

    def _expect_end(self, trial: str) -> None:
        """An end is heard of from the trial itself, whoever is away."""
        query = f"SELECT count(*) FROM runs WHERE trial_id = '{trial}' AND outcome = 'COMPLETED'"
        _wait_until(lambda: self._cluster.rows(query)[0][0] == 1, what=f"the end of trial {trial}")
        self._outcome.early_ends += 1

    def _judge(self) -> None:
        outcome, rows = self._outcome, self._cluster.rows
        states = [str(state) for (state,) in rows("SELECT state FROM trials")]
        outcomes = [str(one) for (one,) in rows("SELECT outcome FROM runs")]
        outcome.trials = len(states)
        outcome.restarts = rows("SELECT sum(restarts) FROM trials")[0][0]
        wanted = ["COMPLETED"] * (_TRIALS + len(self._experiments) - 1)
        if states != wanted or outcomes != wanted:
            outcome.tally.violations.append(f"trials ended as {states}, their runs as {outcomes}")
        if outcome.restarts:
            outcome.tally.violations.append(f"{outcome.restarts} restarts were counted")
        for experiment in self._experiments:
            outcome.tally.add(experiment.evidence())


def _is_away(channel: grpc.Channel) -> bool:
    return any(_AWAY in problem for problem in problems_of(channel))


def _wait_until(condition: Callable[[], bool], *, what: str) -> None:
    wait_until(condition, what=what, seconds=_NOTICE_SECONDS, pause=_LOOK_SECONDS)


def _sleep_until(moment: float) -> None:
    time.sleep(max(moment - time.monotonic(), 0.0))


def run_outage(name: str, home: Path, *, seconds: float) -> Outcome:
    """Takes an engine away once, and checks everything.

    Args:
        name: One of ``ENGINES``.
        home: Empty directory for the cluster and all evidence.
        seconds: How long its daemon is away.
    """
    outcome = Outcome(name)
    with opened(name, home / "engine", dice=random.Random(name)) as engine:
        assert isinstance(engine, InterruptibleEngine)
        with fault_cluster(home, slots=_SLOTS, services_apart=False, engine=engine) as cluster:
            try:
                Outage(cluster, engine, outcome=outcome, seconds=seconds).run()
            except AssertionError as failure:
                outcome.tally.violations.append(str(failure))
    return outcome


def main() -> int:
    """Runs one outage.

    Returns:
        0 when nothing was lost; the engine was there, unless it need not be.
    """
    parser = argparse.ArgumentParser(prog="outage", description=__doc__)
    parser.add_argument("--engine", choices=ENGINES, required=True, help="where trials run")
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long its daemon is away")
    parser.add_argument("--optional", action="store_true", help="succeed where the engine is not installed")
    options = parser.parse_args()
    outage = partial(run_outage, options.engine, seconds=options.seconds)
    found = in_new_home(outage, name=f"outage-{options.engine}", engine=options.engine)
    if found is None:
        return 0 if options.optional else 1
    return 1 if found else 0


if __name__ == "__main__":
    end_cleanly()
    sys.exit(main())

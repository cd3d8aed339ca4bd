"""Fail-over during a search: the machine that serves is killed, stopped or cut off, and another takes over.

Run as ``make failover KILLS=50 PARTITIONS=50``. Everything else is as in ``chaos``: the same search, the same
trials with journals, the same invariants. Half of the partitions stop the process that serves; half lose its
packets to and from the database. Both processes live then: the former one must be fenced, and end.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from faults.harness.chaos import SLOTS, TRIALS, FaultRun
from faults.harness.chaos import Outcome as ChaosOutcome
from faults.harness.cluster_processes import Role
from faults.harness.engines.local import LocalEngine
from faults.harness.engines.opened import LOCAL
from faults.harness.invariants import Evidence
from faults.harness.journals import read_journals
from faults.harness.machine_pair import Machine, MachinePair, machine_pair
from faults.harness.new_home import in_new_home
from faults.harness.service_queries import channel_to, problems_of
from faults.harness.tally import Tally
from faults.harness.watched_threads import WatchedThread
from support.processes.clean_ending import end_cleanly
from support.processes.suspension import suspend
from support.waiting import wait_until

from resolute.api.experiments.v1 import workspaces_service_pb2 as pb2
from resolute.api.experiments.v1 import workspaces_service_pb2_grpc
from resolute.errors import ResoluteError

MOST_SECONDS = 10.0
"""From a kill to the next answer."""
_MEAN_PAUSE_SECONDS = 2.0
_SECONDS = 300.0
_SECONDS_OF_FAULT = 60.0
"""By which one fault may prolong the search."""
_LATE_SECONDS = 60.0
_FENCED = 3
"""Exit code of a process that was fenced."""
_LATE = "late"


@dataclass
class Outcome:
    """What was seen."""

    search: ChaosOutcome
    answers: list[float] = field(default_factory=list)
    """Seconds from each kill to the next answer."""
    partitions: int = 0
    fenced: int = 0
    """Processes that ended because the other one had taken over."""

    @property
    def late(self) -> int:
        """How often the next answer took too long."""
        return sum(seconds > MOST_SECONDS for seconds in self.answers)

    @property
    def tally(self) -> Tally:
        """What must not be."""
        return self.search.tally

    def __str__(self) -> str:
        longest, mean = max(self.answers, default=0.0), sum(self.answers) / max(len(self.answers), 1)
        return (
            f"{len(self.answers)} kills, {mean:.1f} s on average and {longest:.1f} s at most to the next "
            f"answer, {self.late} times over {MOST_SECONDS:g} s; "
            f"{self.partitions} partitions, {self.fenced} of them fenced; {self.search}"
        )


class Failovers:
    """Takes the machine that serves away, again and again, in a thread.

    Args:
        pair: Both machines.
        outcome: Takes what was seen.
        kills: How many kills.
        partitions: How many partitions.
    """

    def __init__(self, pair: MachinePair, outcome: Outcome, *, kills: int, partitions: int) -> None:
        self._pair = pair
        self._outcome = outcome
        self._dice = random.Random(outcome.search.seed)
        self._left = [self._kill] * kills + [self._stop] * (partitions - partitions // 2)
        self._left += [self._cut] * (partitions // 2)
        self._dice.shuffle(self._left)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="late-write")
        self._stopped = threading.Event()
        self._thread = WatchedThread("fail-overs", self._run)
        self.budget = 0
        """How many are allowed so far; they go with the search's progress."""

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def check(self) -> None:
        """Makes sure that the thread still does its work."""
        self._thread.check()

    def stop(self) -> None:
        """Ends; one machine serves then, and the other stands by."""
        self._stopped.set()
        self._thread.join(2 * _SECONDS)
        self._writer.shutdown()

    def _run(self) -> None:
        kills = self._outcome.search.damage.kills
        while not self._stopped.wait(self._dice.expovariate(1 / _MEAN_PAUSE_SECONDS)):
            if self._left and kills.total() < self.budget:
                former = self._pair.serving
                self._left.pop()(former)
                former.start()
                kills[Role.CONTROL_PLANE] += 1

    def _kill(self, former: Machine) -> None:
        began = time.monotonic()
        assert former.process is not None
        former.process.kill()
        self._pair.follow()
        wait_until(self._answers, seconds=_SECONDS, what="an answer of the other machine")
        self._outcome.answers.append(time.monotonic() - began)
        former.wait()

    def _answers(self) -> bool:
        try:
            with channel_to(self._pair.front) as channel:
                problems_of(channel)
        except ResoluteError:
            return False
        return True

    def _stop(self, former: Machine) -> None:
        assert former.process is not None
        with channel_to(former.cluster) as channel:
            problems_of(channel)  # the connection is there before the process stops
            suspend(former.process.pid)
            self._pair.follow()
            late = self._write_late(channel)
            former.process.send_signal(signal.SIGCONT)
            self._require_fenced(former, late)

    def _cut(self, former: Machine) -> None:
        with channel_to(former.cluster) as channel:
            problems_of(channel)
            former.database.partition()
            self._pair.follow()
            late = self._write_late(channel)
            former.database.heal()
            self._require_fenced(former, late)

    def _write_late(self, channel: grpc.Channel) -> Future[object]:
        """Asks the former process for a write: its kernel keeps the request if it is stopped."""
        stub = workspaces_service_pb2_grpc.WorkspacesServiceStub(channel)
        request = pb2.CreateWorkspaceRequest(name=f"{_LATE} {self._outcome.partitions}")
        return self._writer.submit(stub.CreateWorkspace, request, timeout=_LATE_SECONDS)

    def _require_fenced(self, former: Machine, late: Future[object]) -> None:
        self._outcome.partitions += 1
        code = former.wait()
        answered = late.exception(2 * _LATE_SECONDS) is None
        if code == _FENCED and not answered:
            self._outcome.fenced += 1
            return
        self._outcome.tally.violations.append(
            f"a process that another had replaced exited with {code}"
            + (", after it had acknowledged a write" if answered else "")
        )


def run_failovers(home: Path, *, kills: int, partitions: int, trials: int = TRIALS, seed: int = 1) -> Outcome:
    """Runs one search and checks every invariant.

    Args:
        home: Empty directory for the cluster and all evidence.
        kills: How often the process that serves is killed.
        partitions: How often it is stopped or cut off.
        trials: Trials of the search.
        seed: Decides the search, and what happens when.
    """
    outcome = Outcome(ChaosOutcome(seed, trials, on_postgres=True))
    folder = home / "evidence"
    folder.mkdir(parents=True)
    with machine_pair(home, slots=SLOTS) as pair:
        failovers = Failovers(pair, outcome, kills=kills, partitions=partitions)
        run = FaultRun(pair.front, folder, outcome=outcome.search, kills=kills + partitions, faults=failovers)
        began = time.monotonic()
        try:
            experiment = run.submit()
            course = run.course(experiment)
            run.run(experiment, course, seconds=_SECONDS + _SECONDS_OF_FAULT * (kills + partitions))
            pair.front.det("e", "wait", "1", timeout=_SECONDS)
            for _ in range(2):
                pair.switch()
            evidence = Evidence(
                cluster=pair.front,
                experiment=experiment,
                course=course,
                journals=read_journals(folder / "journals"),
            )
            outcome.tally.add(evidence)
            outcome.tally.violations += LocalEngine().left_over(pair.standby.cluster.home)
            late = pair.front.rows(f"SELECT count(*) FROM workspaces WHERE name LIKE '{_LATE} %'")[0][0]
            if late:
                outcome.tally.violations.append(f"{late} writes of replaced processes are in the database")
        except AssertionError as failure:
            outcome.tally.violations.append(str(failure))
        outcome.search.seconds = time.monotonic() - began
    return outcome


def main() -> int:
    """Runs one search with fail-overs.

    Returns:
        0 when every invariant held, and each answer came in time.
    """
    parser = argparse.ArgumentParser(prog="failover", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how often the process that serves is killed")
    parser.add_argument("--partitions", type=int, default=50, help="how often it is stopped or cut off")
    parser.add_argument("--trials", type=int, default=TRIALS, help="trials of the search")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    def attack(home: Path) -> Outcome:
        outcome = run_failovers(
            home, kills=options.kills, partitions=options.partitions, trials=options.trials, seed=options.seed
        )
        if outcome.late:
            outcome.tally.violations.append(
                f"{outcome.late} answers came later than after {MOST_SECONDS:g} s"
            )
        return outcome

    return 1 if in_new_home(attack, name="failover", engine=LOCAL) != [] else 0


if __name__ == "__main__":
    end_cleanly()
    sys.exit(main())

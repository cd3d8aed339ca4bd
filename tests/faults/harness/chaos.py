"""Faults during a search: a whole cluster is killed piece by piece at random times, and nothing may be lost.

Run as ``make chaos SEEDS=n``, or ``make chaos ENGINE=name`` for an engine with daemons. A seed decides
the search and the times and targets of the kills; how far the processes have come when they are hit is up to
the machine, so a seed repeats the kind of a failure, not its exact instant. After a failure the home is left
for a look.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from faults.harness.cluster_processes import Role
from faults.harness.engines.opened import ENGINES, LOCAL, opened
from faults.harness.fault_cluster import FaultCluster, fault_cluster
from faults.harness.invariants import Evidence
from faults.harness.journals import read_journals
from faults.harness.killer import Damage, ProcessKiller
from faults.harness.new_home import in_new_home
from faults.harness.pauser import Pauser
from faults.harness.reference import ReferenceRun, undisturbed
from faults.harness.service_queries import channel_to, log_of, replay, search
from faults.harness.submission import shared_directory, submit
from faults.harness.tally import Tally
from support.processes.clean_ending import end_cleanly

from resolute.errors import ResoluteError
from resolute_searcher.identifiers import trial_id
from resolute_searcher.wire.spec import spec_from

TRIALS = 40
SLOTS = 4
_TIMEOUT_SECONDS = 3600.0
"""How long a search may take that is killed all the time."""
_WAIT_SECONDS = 300
"""How long a command may wait for the end of an experiment whose search has ended."""
_KILLS_PER_PAUSE = 5
_TICK_SECONDS = 0.1
_LEAD_SHARE = 8
"""Which part of the kills may come before its time."""


def loss(hparams: dict[str, float], length: int) -> float:
    """The metric of a trial at a length, as ``search/train.py`` reports it."""
    return (hparams["x"] - 0.3) ** 2 + 1 / length


def config(*, seed: int, trials: int, warm_start: bool = False) -> dict[str, object]:
    """The experiment: a search whose restarts are budgeted for what it is going to suffer.

    Args:
        seed: Decides the search.
        trials: Its trials.
        warm_start: Whether runs are forked from parked processes.
    """
    return {
        "name": f"chaos-{seed}",
        "entrypoint": "python3 train.py",
        "environment": {"warm_start": warm_start},
        "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
        "reproducibility": {"experiment_seed": seed},
        "max_restarts": 1000,
        "repeat_same_failure": True,
        "searcher": {
            "name": "adaptive_asha",
            "metric": "loss",
            "max_length": 32,
            "max_trials": trials,
            "max_concurrent_trials": SLOTS,
        },
    }


@dataclass
class Outcome:
    """What a run of the harness saw."""

    seed: int
    trials: int
    engine: str = LOCAL
    """Where its trials ran."""
    on_postgres: bool = False
    warm_start: bool = False
    """Whether runs are forked from parked processes."""
    damage: Damage = field(default_factory=Damage)
    pauses: int = 0
    """How often a person paused the search."""
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)

    def __str__(self) -> str:
        tally = self.tally
        summary = "; ".join(tally.violations) or "every invariant holds"
        where = "PostgreSQL and an object store" if self.on_postgres else "SQLite and directories"
        return (
            f"seed {self.seed}, {self.trials} trials on {self.engine}, {where}: "
            f"{_counts(self.damage.kills, 'kills')}; "
            f"{_counts(self.damage.stops, 'stops')} of {self.damage.stopped_seconds:.0f} s in all; "
            f"{self.pauses} pauses; {self.seconds:.0f} s; {tally.runs} runs that made {tally.reports} "
            f"reports, of which {tally.unsent_reports} fell with nodes, {tally.checkpoints} checkpoints and "
            f"{tally.lines} lines, {tally.unsaved_lines} of them missing in logs that say so or fallen with "
            f"nodes: {summary}"
        )


def _counts(counter: Counter[Role], what: str) -> str:
    each = ", ".join(f"{counter[role]} {role.value}" for role in Role if counter[role])
    return f"{counter.total()} {what} ({each})" if each else f"no {what}"


class Faults(Protocol):
    """What goes wrong while a search runs."""

    budget: int
    """Kills that are allowed so far; they go with the search's progress."""

    def start(self) -> None:
        """Begins."""

    def check(self) -> None:
        """Makes sure that it goes on; raises AssertionError if not."""

    def stop(self) -> None:
        """Ends, and leaves a cluster that is up."""


class FaultRun:
    """One search from its submission to its end, with faults.

    Args:
        cluster: The cluster; it is up.
        folder: Where trials keep journals and read whose turn it is.
        outcome: Takes what was seen.
        kills: Fewest kills before the last operation may complete.
        faults: What goes wrong meanwhile; None for random kills of processes.
    """

    def __init__(
        self,
        cluster: FaultCluster,
        folder: Path,
        *,
        outcome: Outcome,
        kills: int,
        faults: Faults | None = None,
    ) -> None:
        self._cluster = cluster
        self._folder = folder
        self._outcome = outcome
        self._kills = kills
        self._turns = folder / "turns"
        self._replayed = 0
        self._error = ""
        self._faults = faults or ProcessKiller(
            cluster, dice=random.Random(outcome.seed), damage=outcome.damage
        )

    def submit(self) -> str:
        """Submits the search and returns its UUID."""
        shared_directory(self._folder / "journals")
        self._turns.touch()
        outcome = self._outcome
        search = config(seed=outcome.seed, trials=outcome.trials, warm_start=outcome.warm_start)
        submit(self._cluster, self._folder, search, {})
        return str(self._cluster.json("e", "describe", "1")[0]["experiment"]["uuid"])

    def course(self, experiment: str) -> ReferenceRun:
        """Computes how the search goes undisturbed."""
        deadline = time.monotonic() + 30
        with channel_to(self._cluster) as channel:
            while True:
                try:
                    return undisturbed(spec_from(search(channel, experiment).spec), loss)
                except ResoluteError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_TICK_SECONDS)

    def run(self, experiment: str, course: ReferenceRun, *, seconds: float = _TIMEOUT_SECONDS) -> None:
        """Kills while the search runs, hands out turns, and returns when it is over.

        Raises:
            AssertionError: It did not end within ``seconds``, or its log went wrong on the way.
        """
        deadline = time.monotonic() + seconds
        person = Pauser(self._cluster, experiment, dice=random.Random(self._outcome.seed))
        self._faults.start()
        try:
            while (done := self._look(experiment)) < len(course.completions):
                if done >= 0:
                    self._pace(experiment, course, done)
                person.tick(most=1 + self._faults.budget // _KILLS_PER_PAUSE)
                self._faults.check()
                assert time.monotonic() < deadline, (
                    f"the search did not end within {seconds:g} s: {self._progress(experiment, course, done)}"
                )
                time.sleep(_TICK_SECONDS)
        finally:
            self._outcome.pauses = person.pauses
            self._faults.stop()
        person.leave()

    def _look(self, experiment: str) -> int:
        """Counts the completions so far; -1 while nobody answers. Replays the log after each crash.

        Raises:
            AssertionError: What was recovered is not what the log says.
        """
        lives = self._outcome.damage.kills[Role.CONTROL_PLANE]
        try:
            with channel_to(self._cluster) as channel:
                log = log_of(channel, experiment)
        except ResoluteError as failure:
            self._error = str(failure)
            return -1
        if lives > self._replayed:
            # Who does not answer now is asked at the next look; the search goes on meanwhile.
            with suppress(ResoluteError), channel_to(self._cluster) as channel:
                again = replay(channel, experiment)
                self._replayed = lives
                assert again.equal, f"after kill {lives} of the control plane: {again.detail}"
        return sum(entry.event.HasField("validation_completed") for entry in log)

    def _progress(self, experiment: str, course: ReferenceRun, done: int) -> str:
        """What the search waits for."""
        kills = self._outcome.damage.kills.total()
        if done < 0:
            return f"nobody answers ({self._error}); {kills} kills of {self._kills}"
        following = course.completions[done]
        waits_for = f"trial {trial_id(experiment, following.trial_key)} at length {following.length}"
        trials = self._cluster.rows("SELECT number, state, run, restarts, explanation FROM trials")
        return (
            f"{done} of {len(course.completions)} operations are completed, {kills} kills of {self._kills}; "
            f"it waits for {waits_for}; number, state, run, restarts and explanation of trials: {trials}"
        )

    def _pace(self, experiment: str, course: ReferenceRun, done: int) -> None:
        """Lets the next operation complete, unless the search would end before it was hit often enough."""
        total = len(course.completions)
        lead = max(total // _LEAD_SHARE, 1)
        self._faults.budget = max(lead, self._kills * (done + lead) // total)
        if done == total - 1 and self._outcome.damage.kills.total() < self._kills:
            return
        following = course.completions[done]
        line = f"{trial_id(experiment, following.trial_key)} {following.length}\n"
        if line not in self._turns.read_text():
            with self._turns.open("a") as turns:
                turns.write(line)


def run_seed(
    seed: int,
    home: Path,
    *,
    kills: int = 100,
    trials: int = TRIALS,
    warm_start: bool = False,
    engine: str = LOCAL,
    seconds: float = _TIMEOUT_SECONDS,
) -> Outcome:
    """Runs one seed and checks every invariant. Even seeds run on PostgreSQL and an object store.

    With an engine other than ``local`` all run on SQLite and directories.

    Args:
        seed: Decides the search, and whom to kill when.
        home: Empty directory for the cluster and all evidence.
        kills: Fewest kills of the run.
        trials: Trials of the search.
        warm_start: Whether runs are forked from parked processes.
        engine: Where trials run; one of ``ENGINES``.
        seconds: How long the search may take.
    """
    apart = engine == LOCAL and seed % 2 == 0
    outcome = Outcome(seed, trials, engine=engine, on_postgres=apart, warm_start=warm_start)
    folder = home / "evidence"
    folder.mkdir(parents=True)
    with (
        opened(engine, home / "engine", dice=random.Random(f"{seed} {engine}")) as attacked,
        fault_cluster(home, slots=SLOTS, services_apart=apart, engine=attacked) as cluster,
    ):
        began = time.monotonic()
        try:
            _attack(cluster, folder, outcome=outcome, kills=kills, seconds=seconds)
        except AssertionError as failure:
            outcome.tally.violations.append(str(failure))
        outcome.seconds = time.monotonic() - began
    return outcome


def _attack(cluster: FaultCluster, folder: Path, *, outcome: Outcome, kills: int, seconds: float) -> None:
    run = FaultRun(cluster, folder, outcome=outcome, kills=kills)
    experiment = run.submit()
    course = run.course(experiment)
    run.run(experiment, course, seconds=seconds)
    cluster.det("e", "wait", "1", timeout=_WAIT_SECONDS)
    journals = read_journals(folder / "journals")
    outcome.tally.add(Evidence(cluster=cluster, experiment=experiment, course=course, journals=journals))


def main() -> int:
    """Runs many seeds.

    Returns:
        0 when every invariant held in all of them; the engine was there.
    """
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to run, one after the other")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--kills", type=int, default=100, help="fewest kills of each run")
    parser.add_argument("--trials", type=int, default=TRIALS, help="trials of each search")
    parser.add_argument("--engine", choices=ENGINES, default=LOCAL, help="where trials run")
    parser.add_argument("--warm-start", action="store_true", help="fork runs from parked processes")
    options = parser.parse_args()
    bad = 0
    for seed in range(options.first, options.first + options.seeds):
        attack = partial(
            run_seed,
            seed,
            kills=options.kills,
            trials=options.trials,
            warm_start=options.warm_start,
            engine=options.engine,
        )
        found = in_new_home(attack, name=f"chaos-{seed}", engine=options.engine)
        if found is None:
            return 1
        bad += bool(found)
    return 1 if bad else 0


if __name__ == "__main__":
    end_cleanly()
    sys.exit(main())

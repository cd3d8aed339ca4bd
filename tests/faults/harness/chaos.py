"""A search under fire: a whole cluster is killed piece by piece at random times, and nothing may be lost.

Run as ``make chaos SEEDS=n``. A seed decides the search and the times and targets of the kills; how far the
processes have come when they are hit is up to the machine, so a seed repeats the kind of a failure, not its
exact instant. After a failure the home is left for a look.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import yaml
from faults.harness import invariants
from faults.harness.cluster_processes import Role, processes_of
from faults.harness.invariants import Evidence
from faults.harness.journals import read_journals
from faults.harness.pauser import Pauser
from faults.harness.reference import ReferenceRun, undisturbed
from faults.harness.service_queries import channel_to, log_of, replay, search
from support.clusters.embedded import EmbeddedCluster

from resolute.errors import ResoluteError
from resolute_searcher.identifiers import trial_id
from resolute_searcher.wire.contract import stored_spec
from resolute_searcher.wire.spec import spec_from

TRIALS = 40
SLOTS = 4
_PROJECT = Path(__file__).parent / "search"
_TIMEOUT_SECONDS = 480.0
"""How long a search may take that is killed all the time."""
_MEAN_PAUSE_SECONDS = 0.6
"""Between two kills."""
_TICK_SECONDS = 0.1
_LEAD = 6
"""How many completions' share of the kills may come before their time."""
_WEIGHTS = {Role.TRIAL: 5.0, Role.SUPERVISOR: 4.0, Role.CONTROL_PLANE: 1.0, Role.SALVAGE: 0.5}


def loss(hparams: dict[str, float], length: int) -> float:
    """The metric of a trial at a length, as ``search/train.py`` reports it."""
    return (hparams["x"] - 0.3) ** 2 + 1 / length


def config(folder: Path, *, seed: int, trials: int) -> dict[str, object]:
    """The experiment: a search whose restarts are budgeted for what it is going to suffer."""
    return {
        "name": f"chaos-{seed}",
        "entrypoint": "python3 train.py",
        "environment": {"environment_variables": [f"CHAOS_FOLDER={folder}"]},
        "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1}},
        "reproducibility": {"experiment_seed": seed},
        "max_restarts": 1000,
        "checkpoint_storage": {
            "save_experiment_best": 0,
            "save_trial_best": 0,
            "save_trial_latest": 100_000,
        },
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
    kills: Counter[Role] = field(default_factory=Counter)
    pauses: int = 0
    seconds: float = 0.0
    runs: int = 0
    reports: int = 0
    checkpoints: int = 0
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kills = ", ".join(f"{self.kills[role]} {role.value}" for role in Role)
        verdict = "; ".join(self.violations) or "every invariant holds"
        total = sum(self.kills.values())
        return (
            f"seed {self.seed}: {total} kills ({kills}) and {self.pauses} pauses in {self.seconds:.0f} s, "
            f"{self.runs} runs that made {self.reports} reports and {self.checkpoints} checkpoints: {verdict}"
        )


class ProcessKiller:
    """Kills random processes of a cluster in a thread, and starts its control plane again at once.

    Args:
        cluster: The cluster; it is up.
        dice: Decides whom and when.
        kills: Counts who was hit.
    """

    def __init__(self, cluster: EmbeddedCluster, *, dice: random.Random, kills: Counter[Role]) -> None:
        self._cluster = cluster
        self._dice = dice
        self._kills = kills
        self._stop = threading.Event()
        self._killer = threading.Thread(target=self._kill, name="killer")
        self._starter = threading.Thread(target=self._keep_up, name="starter")
        self.budget = 0
        """Kills that are allowed so far; kills go with the search's progress."""

    def start(self) -> None:
        """Opens fire."""
        self._killer.start()
        self._starter.start()

    def stop(self) -> None:
        """Kills no more, and sees to it that the cluster is up."""
        self._stop.set()
        self._killer.join()
        self._starter.join()
        while not self._serves():
            self._up()

    def _kill(self) -> None:
        while not self._stop.wait(self._dice.expovariate(1 / _MEAN_PAUSE_SECONDS)):
            if sum(self._kills.values()) < self.budget:
                self._kill_one()

    def _kill_one(self) -> None:
        living = processes_of(self._cluster.home)
        by_role = {role: [victim for victim in living if victim.role is role] for role in _WEIGHTS}
        roles = [role for role in _WEIGHTS if by_role[role]]
        if not roles:
            return
        role = self._dice.choices(roles, [_WEIGHTS[role] for role in roles])[0]
        if self._dice.choice(by_role[role]).identity.send(signal.SIGKILL):
            self._kills[role] += 1

    def _keep_up(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            if not self._serves():
                self._up()

    def _serves(self) -> bool:
        return any(victim.role is Role.CONTROL_PLANE for victim in processes_of(self._cluster.home))

    def _up(self) -> None:
        # It may well be killed while it starts; anyone who looks next sees that nobody serves.
        self._cluster.run(
            "resolute", "up", "--detach", "--slots", str(self._cluster.slots), check=False, timeout=90
        )


class FaultRun:
    """One search from its submission to its end, under fire.

    Args:
        cluster: The cluster; it is up.
        folder: Where trials keep journals and read whose turn it is.
        outcome: Takes what was seen.
        kills: Fewest kills before the last operation may complete.
    """

    def __init__(self, cluster: EmbeddedCluster, folder: Path, *, outcome: Outcome, kills: int) -> None:
        self._cluster = cluster
        self._folder = folder
        self._outcome = outcome
        self._kills = kills
        self._turns = folder / "turns"
        self._replayed = 0
        self._fire = ProcessKiller(cluster, dice=random.Random(outcome.seed), kills=outcome.kills)

    def submit(self) -> str:
        """Submits the search and returns its UUID."""
        (self._folder / "journals").mkdir()
        self._turns.touch()
        project = self._folder / "project"
        shutil.copytree(_PROJECT, project, ignore=shutil.ignore_patterns("__pycache__"))
        path = self._folder / "config.yaml"
        path.write_text(
            yaml.safe_dump(config(self._folder, seed=self._outcome.seed, trials=self._outcome.trials))
        )
        self._cluster.det("e", "create", str(path), str(project))
        return str(self._cluster.json("e", "describe", "1")[0]["experiment"]["uuid"])

    def course(self, experiment: str) -> ReferenceRun:
        """Computes how the search goes undisturbed."""
        deadline = time.monotonic() + 30
        with channel_to(self._cluster) as channel:
            while True:
                try:
                    return undisturbed(spec_from(stored_spec(search(channel, experiment).spec)), loss)
                except ResoluteError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_TICK_SECONDS)

    def run(self, experiment: str, course: ReferenceRun) -> None:
        """Kills while the search runs, hands out turns, and returns when it is over.

        Raises:
            AssertionError: It did not end, or its log went wrong on the way.
        """
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        with channel_to(self._cluster) as channel:
            person = Pauser(channel, experiment, dice=random.Random(self._outcome.seed))
            self._fire.start()
            try:
                while (done := self._look(channel, experiment)) < len(course.completions):
                    if done >= 0:
                        self._pace(experiment, course, done)
                    person.tick()
                    assert time.monotonic() < deadline, "the search did not end in time"
                    time.sleep(_TICK_SECONDS)
            finally:
                self._outcome.pauses = person.pauses
                self._fire.stop()
            person.leave()

    def _look(self, channel: grpc.Channel, experiment: str) -> int:
        """Counts the completions so far; -1 while nobody answers. Replays the log after each crash.

        Raises:
            AssertionError: What was recovered is not what the log says.
        """
        lives = self._outcome.kills[Role.CONTROL_PLANE]
        try:
            log = log_of(channel, experiment)
            again = replay(channel, experiment) if lives > self._replayed else None
        except ResoluteError:
            return -1
        if again is not None:
            self._replayed = lives
            assert again.equal, f"after kill {lives} of `up`: {again.detail}"
        return sum(entry.event.HasField("validation_completed") for entry in log)

    def _pace(self, experiment: str, course: ReferenceRun, done: int) -> None:
        """Lets the next operation complete, unless the search would end before it was hit often enough."""
        total = len(course.completions)
        self._fire.budget = max(_LEAD, self._kills * (done + _LEAD) // total)
        if done == total - 1 and sum(self._outcome.kills.values()) < self._kills:
            return
        following = course.completions[done]
        line = f"{trial_id(experiment, following.trial_key)} {following.length}\n"
        if line not in self._turns.read_text():
            with self._turns.open("a") as turns:
                turns.write(line)


def run_seed(seed: int, home: Path, *, kills: int = 100, trials: int = TRIALS) -> Outcome:
    """Runs one seed and checks every invariant.

    Args:
        seed: Decides the search, and whom to kill when.
        home: Empty directory for the cluster and all evidence.
        kills: Fewest kills of the run.
        trials: Trials of the search.
    """
    outcome = Outcome(seed, trials)
    began = time.monotonic()
    folder = home / "evidence"
    folder.mkdir(parents=True)
    cluster = EmbeddedCluster(home / "h", slots=SLOTS)
    cluster.up()
    try:
        siege = FaultRun(cluster, folder, outcome=outcome, kills=kills)
        experiment = siege.submit()
        course = siege.course(experiment)
        siege.run(experiment, course)
        cluster.det("e", "wait", "1", timeout=120)
        journals = read_journals(folder / "journals")
        outcome.runs = len(journals)
        outcome.reports = sum(sum(journal.made.values()) for journal in journals.values())
        outcome.checkpoints = sum(len(journal.stored) for journal in journals.values())
        evidence = Evidence(cluster=cluster, experiment=experiment, course=course, journals=journals)
        outcome.violations += invariants.violations(evidence)
    except AssertionError as failure:
        outcome.violations.append(str(failure))
    finally:
        outcome.seconds = time.monotonic() - began
        cluster.down()
    return outcome


def main() -> int:
    """Runs many seeds.

    Returns:
        0 when every invariant held in all of them.
    """
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds to run, one after the other")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--kills", type=int, default=100, help="fewest kills of each run")
    options = parser.parse_args()
    bad = 0
    for seed in range(options.first, options.first + options.seeds):
        home = Path(tempfile.mkdtemp(prefix=f"chaos-{seed}-"))
        outcome = run_seed(seed, home, kills=options.kills)
        print(outcome, flush=True)
        if outcome.violations:
            bad += 1
            print(f"  look into {home}", flush=True)
        else:
            shutil.rmtree(home, ignore_errors=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

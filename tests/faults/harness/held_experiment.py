"""An experiment whose trials train until the harness lets them go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.harness.fault_cluster import FaultCluster
from faults.harness.invariants import Evidence
from faults.harness.journals import RunJournal, read_journals
from faults.harness.submission import shared_directory, submit

_LONGEST = 1_000_000
"""The length of the trials, in steps: none is held that long."""


@dataclass(frozen=True)
class HeldExperiment:
    """One that was submitted.

    Args:
        cluster: Runs it.
        number: Its number there.
        folder: Holds its code, the journals of its trials, and whom of them was let go.
    """

    cluster: FaultCluster
    number: int
    folder: Path

    @classmethod
    def submit(
        cls, cluster: FaultCluster, *, number: int, trials: int, at_once: int, step_seconds: float
    ) -> HeldExperiment:
        """Submits one.

        Args:
            cluster: It is up.
            number: The number that the experiment is going to have.
            trials: How many trials it has.
            at_once: How many of them may run at the same time.
            step_seconds: How long a step takes.

        Raises:
            AssertionError: It was not accepted.
        """
        folder = cluster.place.evidence / f"experiment-{number}"
        for name in ("journals", "let-go"):
            shared_directory(folder / name)
        config = _config(trials=trials, at_once=at_once)
        submit(cluster, folder, config, {"HELD_STEP_SECONDS": str(step_seconds)})
        return cls(cluster, number, folder)

    def journals(self) -> Mapping[tuple[str, int], RunJournal]:
        """What its trials wrote down, by trial and run."""
        return read_journals(self.folder / "journals")

    def reporting(self) -> list[str]:
        """The trials that have made a report, by their ids."""
        return sorted({journal.trial_id for journal in self.journals().values() if journal.made})

    def let_go(self, trial: str = "all") -> None:
        """Lets a trial end; without an id all of them, those too that begin later."""
        (self.folder / "let-go" / trial).touch()

    def evidence(self) -> Evidence:
        """What there is to judge it by."""
        ((uuid,),) = self.cluster.rows(f"SELECT id FROM experiments WHERE number = {self.number}")
        return Evidence(cluster=self.cluster, experiment=str(uuid), journals=self.journals())


def _config(*, trials: int, at_once: int) -> dict[str, Any]:
    return {
        "name": "held",
        "entrypoint": "python3 held.py",
        "hyperparameters": {"x": {"type": "double", "minval": 0, "maxval": 1, "count": trials}},
        "resources": {"max_slots": at_once},
        "max_restarts": 5,
        "searcher": {"name": "grid", "metric": "loss", "max_length": _LONGEST, "max_concurrent_trials": 0},
    }

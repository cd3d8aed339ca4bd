"""Examples that tests submit to a cluster as people do, and look at by the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.embedded import EmbeddedCluster, eventually

_CREATE_SECONDS = 250


@dataclass(frozen=True)
class ExampleExperiment:
    """An experiment of an example's config."""

    cluster: EmbeddedCluster
    number: str

    @classmethod
    def create(
        cls, cluster: EmbeddedCluster, directory: Path, config: str, *options: str
    ) -> ExampleExperiment:
        """Submits a config of a directory; with ``-f`` among the options it waits for the end."""
        said = cluster.det(
            "e", "create", config, ".", *options, cwd=directory, timeout=_CREATE_SECONDS
        ).stdout
        found = re.search(r"Created experiment (\d+)", said)
        assert found, said
        return cls(cluster, found[1])

    def describe(self) -> Any:
        """What `det e describe --metrics` tells."""
        (description,) = self.cluster.json("e", "describe", self.number, "--metrics")
        return description

    @property
    def state(self) -> str:
        """How it is."""
        return str(self.describe()["experiment"]["state"])

    @property
    def log(self) -> str:
        """The log of its first trial."""
        number = self.describe()["trials"][0]["trial"]["id"]
        return self.cluster.det("t", "logs", str(number)).stdout

    def reports(self, group: str) -> dict[int, dict[str, float]]:
        """The metrics of a group by step, for an experiment of one trial."""
        found = [report for report in self.describe()["metrics"] if report["group"] == group]
        by_step = {report["steps_completed"]: report["metrics"] for report in found}
        assert len(by_step) == len(found), "a step was reported twice"
        return by_step

    def assert_completed(self) -> None:
        """Fails with the log unless it has come to its end."""
        assert self.state == "COMPLETED", self.log

    def pause_and_go_on(self) -> int:
        """Pauses it after a validation and waits for its end; returns the validations before the pause."""
        eventually(lambda: self.reports("validation"), what="a validation", timeout=150)
        self.cluster.det("e", "pause", self.number)
        eventually(lambda: self.state == "PAUSED", what="the pause", timeout=90)
        validations = len(self.reports("validation"))
        self.cluster.det("e", "activate", self.number)
        self.cluster.det("e", "wait", self.number, timeout=200)
        self.assert_completed()
        return validations

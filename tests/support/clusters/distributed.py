"""Trials of several ranks, as tests of launch layers drive and watch them."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.client import Client, Experiment, ExperimentState, Trial, TrialState
from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory

_ROOT = Path(__file__).parents[3]
DISTRIBUTED = _ROOT / "examples" / "distributed"
_HARNESS = "resolute_launch.harness"
_RANK_VARIABLES = ("RANK", "HOROVOD_RANK")
_PAUSE = 0.2
"""Seconds between two looks: who asks all the time takes the processor from the ranks."""


@dataclass(frozen=True, kw_only=True)
class DistributedScript:
    """A training script of several ranks under one launch layer."""

    folder: Path
    """Its model definition."""
    config: str
    """Name of its config."""
    script: str
    """What each rank runs: a file, or a Trial class."""
    includes: tuple[Path, ...] = ()
    """More files of the model definition."""


TORCHRUN = DistributedScript(folder=DISTRIBUTED, config="torchrun.yaml", script="train.py")
HOROVOD = DistributedScript(folder=DISTRIBUTED, config="horovod.yaml", script="train_horovod.py")
DEEPSPEED = DistributedScript(folder=DISTRIBUTED, config="deepspeed.yaml", script="train_deepspeed.py")
DIGITS = DistributedScript(
    folder=_ROOT / "examples" / "digits_trial", config="distributed.yaml", script="model_def:DigitsTrial"
)


@dataclass(frozen=True)
class DistributedTrial:
    """The only trial of an experiment."""

    cluster: EmbeddedCluster
    experiment: Experiment
    script: DistributedScript

    @classmethod
    def create(
        cls, cluster: EmbeddedCluster, client: Client, script: DistributedScript, *settings: str
    ) -> DistributedTrial:
        """Submits a script by the command, with some keys of its config set."""
        options = [word for setting in settings for word in ("--config", setting)]
        options += [word for path in script.includes for word in ("-i", str(path))]
        said = cluster.det("e", "create", script.config, ".", *options, cwd=script.folder).stdout
        found = re.search(r"Created experiment (\d+)", said)
        assert found, said
        return cls(cluster, client.get_experiment(found[1]), script)

    @property
    def number(self) -> str:
        """Number of its experiment."""
        return str(self.experiment.id)

    @property
    def trial(self) -> Trial:
        """The trial."""
        return self.experiment.await_first_trial()

    @property
    def restarts(self) -> int:
        """How often it was started again after a failure."""
        (description,) = self.cluster.json("e", "describe", self.number)
        return int(description["trials"][0]["restarts"])

    def reported(self, group: str) -> list[int]:
        """The steps of its reports."""
        return [report.steps_completed for report in self.trial.iter_metrics(group)]

    def metrics(self, group: str) -> dict[int, dict[str, Any]]:
        """What it reported, by step."""
        return {report.steps_completed: report.metrics for report in self.trial.iter_metrics(group)}

    def wait_for(self, state: ExperimentState, *, timeout: float = 120) -> None:
        """Waits until the experiment is in a state; an end in another fails with the log.

        An experiment is PAUSED from the request on: of that state the end of the run is waited for as well.
        """

        def there() -> bool:
            self.experiment.reload()
            now = self.experiment.state
            assert now is state or not now.is_terminal, f"the experiment ended as {now}\n{self.log()}"
            running = state is ExperimentState.PAUSED and self.trial.state is not TrialState.PAUSED
            return now is state and not running

        wait_until(there, what=f"experiment {self.number} to be {state}", seconds=timeout, pause=_PAUSE)

    def wait_for_step(self, step: int, *, timeout: float = 120) -> None:
        """Waits until it has reported at least so many steps."""
        wait_until(
            lambda: max(self.reported("training"), default=0) >= step,
            what=f"step {step}",
            seconds=timeout,
            pause=_PAUSE,
        )

    def log(self, rank: int | None = None) -> str:
        """Its log, of one rank or of all."""
        options = () if rank is None else ("--rank-id", str(rank))
        return self.cluster.det("t", "logs", str(self.trial.id), *options).stdout

    def logged_steps(self, words: str) -> list[int]:
        """The steps that follow some words in lines of ranks, in their order; not where they are quoted."""
        return [int(found) for found in re.findall(rf"\[rank=\d+\].* {re.escape(words)} (\d+)", self.log())]

    def process_of(self, rank: int) -> int:
        """The process of one rank's script."""
        (pid,) = wait_until(lambda: self._processes(rank), what=f"one process of rank {rank}")
        return pid

    def _processes(self, rank: int) -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                variables = environment_of(int(entry.name))
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            ours = variables.get("RESOLUTE_RUN_DIR", "").startswith(f"{self.cluster.home}/")
            is_rank = any(variables.get(name) == str(rank) for name in _RANK_VARIABLES)
            # Launchers and wrappers of a script have it further back than its own process.
            own = words[1:2] == [self.script.script] or words[2:4] == [_HARNESS, self.script.script]
            if ours and is_rank and own:
                found.append(int(entry.name))
        return found

    def kill_rank(self, rank: int) -> None:
        """Ends the process of one rank as a crash of its machine would."""
        os.kill(self.process_of(rank), signal.SIGKILL)

    def kill_node(self, rank: int) -> None:
        """Ends anyone who looks after the container of one rank, so that nobody sees how that ends."""
        run = RunDirectory(Path(environment_of(self.process_of(rank))["RESOLUTE_RUN_DIR"]))
        supervisor = ProcessIdentity.from_json(read_json(run.supervisor_file))
        assert supervisor is not None
        supervisor.send(signal.SIGKILL)


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    entries = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


Submit = Callable[..., DistributedTrial]
"""Submits a script, with some keys of its config set."""

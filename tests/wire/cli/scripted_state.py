"""What a scripted cluster answers from: messages of the contract in lists that a test fills."""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from resolute.api.checkpoints.v1 import checkpoint_pb2
from resolute.api.experiments.v1 import (
    cluster_service_pb2,
    experiment_pb2,
    experiments_service_pb2,
    job_pb2,
    machine_usage_pb2,
    run_environment_pb2,
    trial_pb2,
    trial_transition_pb2,
)
from resolute.api.logs.v1 import line_pb2
from resolute.api.metrics.v1 import report_pb2, summary_pb2, validation_pb2
from resolute.api.searcher.v1 import event_pb2
from resolute.contracts.values import to_value

TERMINAL = frozenset(
    {
        experiment_pb2.EXPERIMENT_STATE_COMPLETED,
        experiment_pb2.EXPERIMENT_STATE_CANCELED,
        experiment_pb2.EXPERIMENT_STATE_ERROR,
    }
)


class State:
    """What the handlers answer from. Tests change it through ``ScriptedCluster.change``."""

    def __init__(self) -> None:
        self.experiments: list[experiment_pb2.Experiment] = []
        self.trials: list[trial_pb2.Trial] = []
        self.specs: list[experiments_service_pb2.ExperimentSpec] = []
        self.archives: dict[str, bytes] = {}
        self.warnings: list[str] = []
        self.lines: list[line_pb2.Line] = []
        self.closed_logs: set[str] = set()
        self.reports: dict[str, list[report_pb2.Report]] = defaultdict(list)
        self.bests: list[validation_pb2.BestValidation] = []
        self.summaries: list[summary_pb2.Summary] = []
        self.checkpoints: list[checkpoint_pb2.Checkpoint] = []
        self.files: dict[tuple[str, str], bytes] = {}
        self.served_files: list[tuple[str, int]] = []
        self.globs: list[str] = []
        self.templates: dict[str, str] = {}
        self.entries: list[event_pb2.LogEntry] = []
        self.transitions: list[trial_transition_pb2.TrialTransition] = []
        self.jobs: list[job_pb2.Job] = []
        self.environments: dict[int, run_environment_pb2.RunEnvironment] = {}
        self.machines: list[machine_usage_pb2.MachineUsage] = []
        self.slots: list[cluster_service_pb2.Slot] = []
        self.resource_pools: list[cluster_service_pb2.ResourcePool] = []
        self.callers: list[str] = []
        self.problems: list[str] = []
        self.faults: dict[str, list[Exception | None]] = defaultdict(list)
        """Errors that the next calls of a method fail with, by its name; None lets one pass. Those under
        ``<method> midway`` come after its first messages."""

    def add_experiment(self, **fields: Any) -> experiment_pb2.Experiment:
        """Adds an experiment; it is active unless ``state`` says otherwise."""
        config = fields.pop("config", {"name": "digits", "searcher": {"name": "single"}})
        number = len(self.experiments) + 1
        message = experiment_pb2.Experiment(
            **{
                "experiment_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"experiment {number}")),
                "number": number,
                "name": "digits",
                "state": experiment_pb2.EXPERIMENT_STATE_ACTIVE,
                "owner_name": "ada",
                "searcher_name": "single",
                "searcher_metric": "accuracy",
                "smaller_is_better": False,
                "revision": 1,
                "config": to_value(config),
                **fields,
            }
        )
        message.create_time.FromSeconds(1_700_000_000 + number)
        self.experiments.append(message)
        return message

    def add_trial(self, experiment: experiment_pb2.Experiment, **fields: Any) -> trial_pb2.Trial:
        """Adds a trial; it is running unless ``state`` says otherwise."""
        number = len(self.trials) + 1
        hparams = fields.pop("hparams", {"lr": 0.1})
        message = trial_pb2.Trial(
            **{
                "trial_id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"trial {number}")),
                "number": number,
                "experiment_id": experiment.experiment_id,
                "experiment_number": experiment.number,
                "state": trial_pb2.TRIAL_STATE_RUNNING,
                "hparams": to_value(hparams),
                "revision": experiment.revision + 1,
                "run": 1,
                **fields,
            }
        )
        self.trials.append(message)
        experiment.trial_count += 1
        experiment.revision += 1
        return message

    def add_line(self, trial: trial_pb2.Trial, text: str, **fields: Any) -> None:
        """Adds a line to a trial's log."""
        line = line_pb2.Line(
            trial_id=trial.trial_id, message=text, line_id=len(self.lines) + 1, run=1, **fields
        )
        line.time.FromSeconds(1_700_000_000 + len(self.lines))
        self.lines.append(line)

    def add_checkpoint(
        self, trial: trial_pb2.Trial, files: dict[str, bytes], *, steps: int, **fields: Any
    ) -> checkpoint_pb2.Checkpoint:
        """Adds a committed checkpoint with these files."""
        identifier = str(uuid.uuid5(uuid.NAMESPACE_OID, f"checkpoint {len(self.checkpoints)}"))
        message = checkpoint_pb2.Checkpoint(
            checkpoint_id=identifier,
            state=checkpoint_pb2.CHECKPOINT_STATE_COMPLETED,
            trial_id=trial.trial_id,
            experiment_id=trial.experiment_id,
            run=1,
            steps_completed=steps,
            total_size=sum(len(content) for content in files.values()),
            metadata=to_value(fields.pop("metadata", {"steps_completed": steps})),
            **fields,
        )
        for path, content in files.items():
            digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
            message.files.add(path=path, size=len(content), digest=digest)
            self.files[identifier, path] = content
        self.checkpoints.append(message)
        return message

    def add_report(
        self, trial: trial_pb2.Trial, *, steps: int, group: str = "validation", **metrics: Any
    ) -> None:
        """Adds a report of a trial."""
        report = report_pb2.Report(run=1, group=group, steps=steps)
        for name, value in metrics.items():
            report.metrics[name].CopyFrom(to_value(value))
        self.reports[trial.trial_id].append(report)

    def end(self, experiment: experiment_pb2.Experiment, state: int, *, failure: str = "") -> None:
        """Ends an experiment with its trials and their logs."""
        experiment.state = state  # type: ignore[assignment]
        experiment.failure = failure
        experiment.progress = 1.0
        experiment.revision += 1
        for trial in self.trials:
            if trial.experiment_id == experiment.experiment_id:
                trial.state = trial_pb2.TRIAL_STATE_COMPLETED
                trial.revision = experiment.revision
                self.closed_logs.add(trial.trial_id)


def in_order(messages: Iterable[Any], order_by: str) -> list[Any]:
    """Sorts messages by one field, as a service does."""
    field, _, direction = order_by.partition(" ")

    def value(message: Any) -> Any:
        found = getattr(message, field)
        if isinstance(found, Timestamp):
            return found.ToNanoseconds()
        return found.value if isinstance(found, trial_pb2.Validation) else found

    return sorted(messages, key=value, reverse=direction == "desc")

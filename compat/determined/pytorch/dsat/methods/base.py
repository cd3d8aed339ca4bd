"""The shared part of searches for a DeepSpeed config: measure the model, then train one config after
another."""

from __future__ import annotations

import abc
import json
import pickle
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from determined.pytorch.dsat.config import OVERWRITES, merge, stage_space, with_batch_sizes
from determined.pytorch.dsat.results import read_results
from determined.pytorch.dsat.trials import DSATModelProfileInfoTrial, DSATTrial, DSATTrialTracker
from resolute.searcher import (
    Close,
    Create,
    ExitedReason,
    Operation,
    SearcherState,
    SearchMethod,
    Shutdown,
    ValidateAfter,
)

PROFILE_OVERWRITES: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 1,
    "autotuning": {
        "enabled": True,
        "model_info_path": "model_info.json",
        "model_info": {"profile": True},
    },
}
Results = Callable[[int, uuid.UUID], Mapping[str, Any]]
"""Returns what a trial of an experiment measured."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The parameters that all search methods share."""

    stages: Sequence[int] = (1, 2, 3)
    """Stages of ZeRO that are tried."""
    start_profile_step: int = 3
    end_profile_step: int = 5
    seed: int = 42


class BaseDSATSearchMethod(SearchMethod):
    """Profiles the model, then tries configs until the maximum number of trials.

    Args:
        tracker: The trials and their limits.
        hparams: Hyperparameters of the experiment.
        ds_config: Its DeepSpeed config, with the values that its hyperparameters overwrite.
        tuning: The parameters of the search.
        results: Reads the measurements of a trial; the default uses the client.
    """

    def __init__(
        self,
        tracker: DSATTrialTracker,
        *,
        hparams: Mapping[str, Any],
        ds_config: Mapping[str, Any],
        tuning: Tuning,
        results: Results = read_results,
    ) -> None:
        super().__init__()
        self.tracker = tracker
        self.tuning = tuning
        self._hparams = dict(hparams)
        self._ds_config = dict(ds_config)
        self._results = results
        self._lineages = 0
        self.random = random.Random(tuning.seed)  # noqa: S311 - of a search, not of a secret
        self.generator = np.random.default_rng(tuning.seed)

    @abc.abstractmethod
    def next_trial(self, last: DSATTrial) -> DSATTrial | None:
        """Returns the trial that follows one that was measured or that failed; None for a new config."""

    @abc.abstractmethod
    def first_micro_batch(self, lo: int, hi: int) -> int:
        """Returns the micro batch that is tried of a range."""

    def pick(self) -> DSATTrial:
        """Takes the trial that begins next out of the queue."""
        return self.tracker.queue.popleft()

    def new_range(self, stage: int) -> tuple[int, int]:
        """Returns the micro batches that a new config is tried with."""
        return 1, self.most_records(stage)

    @property
    def stops_early(self) -> bool:
        """Whether the search has seen enough."""
        return False

    # Answers to events.

    def initial_operations(self, searcher_state: SearcherState) -> list[Operation]:
        """Begins with the profile of the model."""
        hparams = {
            **self._hparams,
            OVERWRITES: merge(self._hparams.get(OVERWRITES) or {}, PROFILE_OVERWRITES),
        }
        return _begin(self.tracker.start(DSATModelProfileInfoTrial(hparams, length=1)))

    def on_trial_created(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        """Nothing: a trial gets all of its work at once."""
        return []

    def on_validation_completed(
        self, searcher_state: SearcherState, request_id: uuid.UUID, metric: Any, train_length: int
    ) -> list[Operation]:
        """Keeps what was measured, and plans what follows."""
        trial = self.tracker.trials[request_id]
        assert searcher_state.experiment_id is not None
        trial.metric = dict(self._results(searcher_state.experiment_id, request_id))
        self._plan_after(trial)
        return []

    def on_trial_closed(self, searcher_state: SearcherState, request_id: uuid.UUID) -> list[Operation]:
        """Begins what may run now, or ends the search."""
        self.tracker.trials[request_id].closed = True
        return self._continue()

    def on_trial_exited_early(
        self, searcher_state: SearcherState, request_id: uuid.UUID, exited_reason: ExitedReason
    ) -> list[Operation]:
        """A training that failed says how large micro batches may be; whatever else ends the search."""
        trial = self.tracker.trials[request_id]
        if exited_reason is not ExitedReason.ERRORED or isinstance(trial, DSATModelProfileInfoTrial):
            return [Shutdown(failure=exited_reason is ExitedReason.ERRORED)]
        trial.error = trial.closed = True
        self._plan_after(trial)
        return self._continue()

    def progress(self, searcher_state: SearcherState) -> float:
        """The part of all trials that is over."""
        return self.tracker.completed / self.tracker.max_trials

    # Planning.

    def most_records(self, stage: int) -> int:
        """Returns how many records of a micro batch fit into the memory, by the profile of the model."""
        profile = self.tracker.profile
        assert profile is not None
        memory = profile.memory
        half = bool((self._ds_config.get("fp16") or {}).get("enabled"))
        slots = max(self.tracker.slots_per_trial, 1)
        weights = memory["num_params"] * (2 if half else 4)
        gradients = memory["trainable_num_params"] * 4
        optimizer = memory["trainable_num_params"] * (12 if half else 8)
        if stage == 0:
            used = weights + gradients + optimizer
        elif stage == 1:
            used = weights + gradients + optimizer // slots
        elif stage == 2:
            used = weights + (gradients + optimizer) // slots
        else:
            used = (weights + gradients + optimizer) // slots
        return max((memory["gpu_mem"] - used) // max(memory["activation_mem_per_gpu"], 1), 1)

    def new_lineage(self) -> DSATTrial:
        """Returns a trial of a config that was not tried before."""
        stage = self.random.choice(self._stages())
        chosen = {name: self.random.choice(values) for name, values in stage_space(stage).items()}
        lo, hi = self.new_range(stage)
        self._lineages += 1
        config = {"zero_optimization": {**chosen, "stage": stage}}
        return self.make_trial(config, lineage=self._lineages, lo=lo, hi=hi)

    def successor(self, last: DSATTrial, *, lo: int, hi: int) -> DSATTrial:
        """Returns the next trial of a lineage."""
        config = {"zero_optimization": last.ds_config["zero_optimization"]}
        return self.make_trial(config, lineage=last.lineage, lo=lo, hi=hi)

    def make_trial(self, config: Mapping[str, Any], *, lineage: int, lo: int, hi: int) -> DSATTrial:
        """Returns a trial of a config, with a micro batch of a range."""
        micro = {"train_micro_batch_size_per_gpu": self.first_micro_batch(lo, hi)}
        whole = merge(self._ds_config, {**config, **micro})
        sizes = with_batch_sizes(whole, slots=max(self.tracker.slots_per_trial, 1))
        fixed = {name: sizes[name] for name in ("gradient_accumulation_steps", "train_batch_size")}
        profiled = {
            "enabled": True,
            "start_profile_step": self.tuning.start_profile_step,
            "end_profile_step": self.tuning.end_profile_step,
        }
        overwrites = merge(
            self._hparams.get(OVERWRITES) or {}, {**config, **micro, **fixed, "autotuning": profiled}
        )
        return DSATTrial(
            {**self._hparams, OVERWRITES: overwrites},
            length=self.tuning.end_profile_step + 1,
            lineage=lineage,
            lo=lo,
            hi=hi,
        )

    def _stages(self) -> list[int]:
        working = [stage for stage in (1, 2) if stage in self.tuning.stages and self.tracker.works(stage)]
        return working or list(self.tuning.stages)

    def _plan_after(self, trial: DSATTrial) -> None:
        tracker = self.tracker
        if isinstance(trial, DSATModelProfileInfoTrial):
            count = min(tracker.width, tracker.max_trials - 1)
            tracker.queue.extend(self.new_lineage() for _ in range(count))
        else:
            tracker.queue.append(self.next_trial(trial) or self.new_lineage())

    def _continue(self) -> list[Operation]:
        tracker = self.tracker
        if tracker.completed >= tracker.max_trials or self.stops_early:
            return [Shutdown(failure=bool(tracker.tuning) and tracker.best is None)]
        operations: list[Operation] = []
        while tracker.may_start:
            operations += _begin(tracker.start(self.pick()))
        return operations

    # State in checkpoints.

    def save_method_state(self, path: Path) -> None:
        """Saves the trials, the random numbers, and the best config so far."""
        (path / "trial_tracker.pkl").write_bytes(pickle.dumps((self.tracker, self._lineages)))
        (path / "py_random_state.pkl").write_bytes(pickle.dumps(self.random.getstate()))
        (path / "np_rng.pkl").write_bytes(pickle.dumps(self.generator))
        best = self.tracker.best
        if best is not None:
            config = merge(self._ds_config, best.ds_config)
            config.pop("autotuning", None)
            (path / "best_ds_config.json").write_text(json.dumps(config, indent=2))
            (path / "best_ds_metrics.json").write_text(json.dumps(best.metric, indent=2))

    def load_method_state(self, path: Path) -> None:
        """Goes on from what was saved."""
        self.tracker, self._lineages = pickle.loads((path / "trial_tracker.pkl").read_bytes())  # noqa: S301
        self.random.setstate(pickle.loads((path / "py_random_state.pkl").read_bytes()))  # noqa: S301
        self.generator = pickle.loads((path / "np_rng.pkl").read_bytes())  # noqa: S301


def _begin(trial: DSATTrial) -> list[Operation]:
    """A trial with all of its work: one measurement."""
    return [
        Create(request_id=trial.request_id, hparams=trial.hparams, checkpoint=None),
        ValidateAfter(request_id=trial.request_id, length=trial.length),
        Close(request_id=trial.request_id),
    ]

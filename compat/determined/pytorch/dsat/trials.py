"""The trials of a search for a DeepSpeed config, and which of them may run."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from determined.pytorch.dsat.config import OVERWRITES

MODEL_FIELDS = ("gpu_mem", "num_params", "trainable_num_params", "activation_mem_per_gpu")


@dataclass(eq=False)
class DSATTrial:
    """One trial: a DeepSpeed config, measured once.

    Attributes:
        hparams: Its hyperparameters.
        length: Number of batches that it trains.
        lineage: Identifier of the trials that differ only in their micro batch size.
        lo: Smallest micro batch size that the lineage still considers.
        hi: Largest micro batch size that the lineage still considers.
        request_id: Identifier of the trial within the search.
        metric: The measurements.
        error: Whether it failed, most likely for lack of memory.
        started: Whether it was created.
        closed: Whether it has ended.
    """

    hparams: dict[str, Any]
    length: int
    lineage: int = 0
    lo: int = 1
    hi: int = 1
    request_id: uuid.UUID = field(default_factory=uuid.uuid4)
    metric: dict[str, Any] | None = None
    error: bool = False
    started: bool = False
    closed: bool = False

    @property
    def ds_config(self) -> dict[str, Any]:
        """What it overwrites of the DeepSpeed config."""
        overwritten: dict[str, Any] = self.hparams[OVERWRITES]
        return overwritten

    @property
    def stage(self) -> int:
        """Its stage of ZeRO."""
        return int(self.ds_config.get("zero_optimization", {}).get("stage", 0))

    @property
    def micro_batch(self) -> int:
        """Its micro batch."""
        return int(self.ds_config["train_micro_batch_size_per_gpu"])

    @property
    def failed_at_lo(self) -> bool:
        """Whether nothing smaller is left to try."""
        return self.error and self.micro_batch <= self.lo


class DSATModelProfileInfoTrial(DSATTrial):
    """The first trial, which measures the model's use of memory."""

    @property
    def memory(self) -> dict[str, int]:
        """What it measured.

        Raises:
            ValueError: Something is missing.
        """
        measured = self.metric or {}
        lacking = [name for name in MODEL_FIELDS if name not in measured]
        if lacking:
            raise ValueError(f"the profile of the model lacks {', '.join(lacking)}: it says {measured}")
        return {name: int(measured[name]) for name in MODEL_FIELDS}


@dataclass
class DSATTrialTracker:
    """All trials of a search.

    Attributes:
        metric: Name of the optimized metric.
        smaller_is_better: Whether smaller values are better.
        slots_per_trial: Number of ranks of a trial.
        max_trials: Most trials, including the profile.
        max_concurrent_trials: Most trials that run at once.
        max_slots: Most slots that they use at once; None for no limit.
        trials: All started trials, in order.
        queue: The waiting trials.
        rungs: The rung of each lineage, if the method promotes.
    """

    metric: str
    smaller_is_better: bool
    slots_per_trial: int
    max_trials: int
    max_concurrent_trials: int
    max_slots: int | None = None
    trials: dict[uuid.UUID, DSATTrial] = field(default_factory=dict)
    queue: deque[DSATTrial] = field(default_factory=deque)
    rungs: dict[int, int] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """How many trials may run at once."""
        if self.max_slots is None:
            return self.max_concurrent_trials
        return max(min(self.max_concurrent_trials, self.max_slots // max(self.slots_per_trial, 1)), 1)

    @property
    def tuning(self) -> list[DSATTrial]:
        """Trials that measured a training, in their order."""
        return [trial for trial in self.trials.values() if not isinstance(trial, DSATModelProfileInfoTrial)]

    @property
    def profile(self) -> DSATModelProfileInfoTrial | None:
        """The profile of the model, once it began."""
        profiles = (trial for trial in self.trials.values() if isinstance(trial, DSATModelProfileInfoTrial))
        return next(profiles, None)

    @property
    def completed(self) -> int:
        """How many trials are over."""
        return sum(trial.closed for trial in self.trials.values())

    @property
    def may_start(self) -> bool:
        """Whether another trial may begin."""
        running = sum(not trial.closed for trial in self.trials.values())
        return bool(self.queue) and running < self.width and len(self.trials) < self.max_trials

    def start(self, trial: DSATTrial) -> DSATTrial:
        """Counts a trial as begun."""
        trial.started = True
        self.trials[trial.request_id] = trial
        return trial

    def value(self, trial: DSATTrial) -> float | None:
        """What is optimized, of a trial; None without a measurement."""
        measured: Mapping[str, Any] = trial.metric or {}
        return float(measured[self.metric]) if self.metric in measured else None

    def better(self, one: float, other: float) -> bool:
        """Whether a value is better than another."""
        return one < other if self.smaller_is_better else one > other

    def best_of(self, trials: Iterable[DSATTrial]) -> DSATTrial | None:
        """Returns the best trial of some that have a measurement."""
        best: DSATTrial | None = None
        for trial in trials:
            value = self.value(trial)
            if value is None:
                continue
            known = None if best is None else self.value(best)
            if known is None or self.better(value, known):
                best = trial
        return best

    @property
    def best(self) -> DSATTrial | None:
        """The best trial so far."""
        return self.best_of(self.tuning)

    def of_stage(self, stage: int) -> list[DSATTrial]:
        """Trials of a stage of ZeRO."""
        return [trial for trial in self.tuning if trial.stage == stage]

    def of_lineage(self, lineage: int) -> list[DSATTrial]:
        """Trials of a lineage, in their order."""
        return [trial for trial in self.tuning if trial.lineage == lineage]

    def works(self, stage: int) -> bool:
        """Whether a trial of a stage was measured."""
        return any(trial.metric is not None for trial in self.of_stage(stage))

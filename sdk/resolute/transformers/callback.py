"""The callback that makes a training by Hugging Face's ``Trainer`` a trial."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from resolute import core
from resolute.core import Unit
from resolute.core.reporting.train import TRAINING, VALIDATION
from resolute.info import trial_of
from resolute.transformers.evaluation import can_evaluate
from resolute.transformers.loader_check import warn_of_unrepeatable
from resolute.trials.batch_watch import BatchWatch
from resolute.trials.search_operations import SearchOperations
from resolute.trials.stopping import StopCoordinator
from resolute.trials.throughput import Throughput

_log = logging.getLogger("resolute.transformers")
USER_DATA_FILE = "my_data.json"
"""What ``user_data`` is written to, beside the model."""
_TEST = "test"
_GROUPS = {"eval_": VALIDATION, "test_": _TEST}
_SUMMARY = "train_runtime"
"""Is among what the ``Trainer`` logs once, when all is over."""


class ResoluteCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]  # without transformers it is Any
    """Makes a training by Hugging Face's ``Trainer`` a trial.

    - What is logged is reported; names that begin with ``eval_`` belong to validations. Each group is
      reported once after a step: what comes again, such as the summary at the end, is left out. With the
      metrics of training comes how fast it is, and how much of it waits for data, as group ``throughput``.
    - Each checkpoint that the ``Trainer`` saves becomes one of the trial: ``checkpoint-<step>/`` and
      ``runs/`` of ``output_dir``.
    - When the trial is preempted, all ranks save and stop after the same step.
    - On a cluster whose search gives operations, each is completed by an evaluation at its very end, with a
      checkpoint after it. Without an ``eval_dataset`` it is completed by what was logged last.

    Create it before the ``Trainer``. Unless ``overwrite_output_dir`` is set, it downloads the trial's latest
    checkpoint into ``output_dir`` and sets ``args.resume_from_checkpoint``; pass that to ``train()``.

    Args:
        core_context: The Core API; with several ranks, created with a ``DistributedContext``.
        args: Arguments of the training.
        filter_metrics: Substrings of metric names. Only metrics with one of them are reported; default: all.
        user_data: JSON-like data that is written into every checkpoint, as ``my_data.json``.

    Raises:
        ValueError: Arguments and config give different lengths: ``max_steps`` must equal
            ``searcher.max_length.batches``, ``num_train_epochs`` must equal ``searcher.max_length.epochs``.

    Examples:
        >>> from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
        >>> from resolute import core
        >>> from resolute.transformers import ResoluteCallback
        >>> size = {"n_positions": 4, "n_embd": 8, "n_layer": 1, "n_head": 1}
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=8, bos_token_id=0, eos_token_id=0, **size))
        >>> samples = [{"input_ids": [1, 2, 3, 4], "labels": [1, 2, 3, 4]}] * 8
        >>> arguments = TrainingArguments("output", max_steps=2, report_to=[])
        >>> with core.init() as context:
        ...     callback = ResoluteCallback(context, arguments)
        ...     trainer = Trainer(model=model, args=arguments, train_dataset=samples, callbacks=[callback])
        ...     trained = trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
        {'train_runtime': ...}
        >>> trained.global_step
        2
    """

    def __init__(
        self,
        core_context: core.Context,
        args: TrainingArguments,
        filter_metrics: Sequence[str] | None = None,
        user_data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.core_context = core_context
        self.filter_metrics = filter_metrics
        self.user_data = user_data
        self.load_last_checkpoint(args)
        self._search = SearchOperations(core_context)
        self._stopping = StopCoordinator(core_context, requested=lambda: False)
        self._reported = {TRAINING: -1, VALIDATION: -1, _TEST: -1}
        self._latest: dict[str, Any] = {}
        self._saved = -1
        self._completing = False
        self._awaited: tuple[str, ...] = (TRAINING, VALIDATION)
        self._throughput = Throughput(core_context)
        self._watch = BatchWatch(self._throughput)
        _check_length(args, self._search)

    # What the Trainer calls.

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Warns of data that a pause would deal otherwise; stops at once if the search wants no more."""
        self.core_context.train.set_status("training")
        warn_of_unrepeatable(kwargs.get("train_dataloader"))
        if not can_evaluate():
            self._awaited = (TRAINING,)
            if self._search.unit is not None:
                _log.warning("Trainer has no eval_dataset: the search goes by the metrics of training")
        if self._throughput.batch_size is None:
            size = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
            self._throughput.batch_size = size
        if self._search.is_over:
            control.should_training_stop = True

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begins to wait for data."""
        self._watch.ready()

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Has the data of a step."""
        self._watch.arrived()

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Follows a search that counts in batches, and asks whether to stop."""
        self._watch.trained()
        if self._search.unit is Unit.BATCHES and self._is_reached(state):
            self._complete(state, control)
        elif not self._ends_epoch(state) and self._stopping.at_step(state.global_step):
            control.should_save = control.should_training_stop = True

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Follows a search that counts in epochs, and asks whether to stop."""
        if self._search.unit is Unit.EPOCHS and self._is_reached(state):
            self._complete(state, control)
        elif not control.should_training_stop and self._stopping.at_boundary():
            control.should_save = control.should_training_stop = True

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Reports what is logged; completes an operation whose metrics are all there."""
        if not logs:
            return
        self._report(dict(logs), state)
        if self._completing:
            self._complete(state, control)
        self._watch.ready()

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Goes on with training: evaluations are no waiting for data."""
        self._watch.ready()

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Makes a checkpoint of what was saved; every rank calls."""
        self._saved = state.global_step
        output, directory = Path(str(args.output_dir)), f"checkpoint-{state.global_step}"
        if state.is_world_process_zero and self.user_data is not None:
            self._on_save_user_data(str(output / directory))
        # The directory is not listed while another rank still writes to it.
        self.core_context.distributed.allgather(None)
        metadata: dict[str, Any] = {"steps_completed": state.global_step}
        trial = trial_of(self.core_context.info)
        if trial is not None:
            metadata["trial_id"] = trial.trial_id
        self.core_context.checkpoint.upload(
            output,
            metadata=metadata,
            shard=True,
            selector=lambda path: path.startswith((f"{directory}/", "runs/")),
        )
        self._watch.ready()

    # What scripts may override or call.

    def load_last_checkpoint(self, args: TrainingArguments) -> None:
        """Fetches the trial's latest checkpoint, if there is one, and has the training continue from it.

        Args:
            args: ``resume_from_checkpoint`` is set.

        Raises:
            RuntimeError: The checkpoint was not made by this callback.
        """
        info = self.core_context.info
        if info is None or info.latest_checkpoint is None:
            return
        if getattr(args, "overwrite_output_dir", False):  # gone from newer releases
            _log.info("overwrite_output_dir is set: the latest checkpoint is not fetched")
            return
        output = Path(str(args.output_dir))
        self.core_context.checkpoint.download(info.latest_checkpoint, output)
        steps = self.core_context.checkpoint.get_metadata(info.latest_checkpoint).get("steps_completed")
        # A run that was killed may have left a later one in the same directory, perhaps half written.
        directory = output / f"checkpoint-{steps}"
        if not directory.is_dir():
            raise RuntimeError(
                f"checkpoint {info.latest_checkpoint} has no {directory.name}/: it was not made by "
                "ResoluteCallback, and Trainer cannot go on from it"
            )
        args.resume_from_checkpoint = str(directory)

    def _on_save_user_data(self, save_path: str) -> None:
        """Writes ``user_data``, on the chief; override it for data that is no JSON.

        Args:
            save_path: Directory of the checkpoint.
        """
        (Path(save_path) / USER_DATA_FILE).write_text(json.dumps(self.user_data))

    # What is done.

    def _report(self, logs: dict[str, Any], state: TrainerState) -> None:
        group = next((group for prefix, group in _GROUPS.items() if _has_prefix(logs, prefix)), TRAINING)
        metrics = {name: value for name, value in logs.items() if self._is_wanted(name)}
        if _SUMMARY in logs or self._reported[group] == state.global_step:
            return
        self._reported[group] = state.global_step
        self._latest.update(metrics)
        if not state.is_world_process_zero:
            return
        train = self.core_context.train
        train.report_metrics(
            group, steps_completed=state.global_step, metrics={**metrics, **self._counts(state)}
        )
        if group is TRAINING:
            self._throughput.report(state.global_step)
        if self._search.unit is not None:
            self._search.report_progress(batches=state.global_step, epochs=state.epoch or 0)
        elif group is not _TEST and state.max_steps > 0:
            train.report_progress(min(state.global_step / state.max_steps, 1.0))

    def _is_wanted(self, name: str) -> bool:
        return not self.filter_metrics or any(part in name for part in self.filter_metrics)

    def _counts(self, state: TrainerState) -> dict[str, float]:
        if not self._search.time_driven:
            return {}
        return {"batches": state.global_step, "epochs": state.epoch or 0}

    def _is_reached(self, state: TrainerState) -> bool:
        return self._search.is_reached(batches=state.global_step, epochs=state.epoch or 0)

    @staticmethod
    def _ends_epoch(state: TrainerState) -> bool:
        return state.epoch is not None and float(state.epoch).is_integer()

    def _complete(self, state: TrainerState, control: TrainerControl) -> None:
        """Completes the operation once training and validation were reported; until then has them made."""
        self._completing = not all(self._reported[group] == state.global_step for group in self._awaited)
        control.should_save = control.should_save or self._saved != state.global_step
        if self._completing:
            control.should_log = True
            control.should_evaluate = control.should_evaluate or VALIDATION in self._awaited
            return
        self._search.complete(self._latest)
        if self._search.is_over:
            control.should_training_stop = True


def _has_prefix(logs: Mapping[str, Any], prefix: str) -> bool:
    return any(name.startswith(prefix) for name in logs)


def _check_length(args: TrainingArguments, search: SearchOperations) -> None:
    """Checks that arguments and config say the same length: learning rates are scheduled by the former.

    Raises:
        ValueError: They do not.
    """
    if search.unit is None or search.max_length is None:
        return
    given = (Unit.EPOCHS, "num_train_epochs", args.num_train_epochs)
    if args.max_steps > 0:
        given = (Unit.BATCHES, "max_steps", args.max_steps)
    unit, name, length = given
    if (unit, length) != (search.unit, search.max_length):
        raise ValueError(
            f"HF trainer units {name}={length} do not match searcher config "
            f"{search.unit.name.lower()}={search.max_length}: give the same length to both, as max_steps and "
            "searcher.max_length.batches, or as num_train_epochs and searcher.max_length.epochs"
        )

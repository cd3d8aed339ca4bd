"""Searches for DeepSpeed configs: what they try, what they conclude, what they keep."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from determined.pytorch import dsat
from determined.pytorch.dsat.__main__ import check_config, parse_arguments, runner_config
from determined.pytorch.dsat._run_dsat import best_config, make_method, trial_config
from determined.pytorch.dsat.methods.base import BaseDSATSearchMethod, Tuning
from resolute import core
from resolute.searcher import (
    Create,
    ExitedReason,
    Operation,
    SearcherState,
    Shutdown,
    ValidateAfter,
)

MODEL = {"gpu_mem": 1000, "num_params": 10, "trainable_num_params": 10, "activation_mem_per_gpu": 20}
MOST = 23
"""The largest micro batch that fits in these tests."""
METHODS: dict[str, Callable[..., BaseDSATSearchMethod]] = {
    "random": dsat.RandomDSATSearchMethod,
    "binary": dsat.BinarySearchDSATSearchMethod,
    "asha": dsat.ASHADSATSearchMethod,
}


class Search:
    """Plays the trials of a search: the larger the micro batch the better, until it fits no more."""

    def __init__(self, name: str, **options: Any) -> None:
        self.measured: dict[uuid.UUID, Mapping[str, Any]] = {}
        tracker = dsat.DSATTrialTracker(
            metric="throughput",
            smaller_is_better=False,
            slots_per_trial=2,
            max_trials=options.pop("max_trials", 16),
            max_concurrent_trials=8,
            max_slots=4,
        )
        self.method = METHODS[name](
            tracker,
            hparams={"lr": 1},
            ds_config={"zero_optimization": {"stage": 0}, "gradient_accumulation_steps": 3},
            tuning=Tuning(stages=(1, 2)),
            results=lambda _, request_id: self.measured[request_id],
            **options,
        )
        self.state = SearcherState()
        self.state.experiment_id = 1
        self.open: list[Create] = []
        self.most_open = 0
        self.lengths: dict[uuid.UUID, int] = {}

    def take(self, operations: list[Operation]) -> Shutdown | None:
        for operation in operations:
            if isinstance(operation, Create):
                self.open.append(operation)
            elif isinstance(operation, ValidateAfter):
                self.lengths[operation.request_id] = operation.length
            elif isinstance(operation, Shutdown):
                return operation
        self.most_open = max(self.most_open, len(self.open))
        return None

    def play_one(self, most: int = MOST) -> Shutdown | None:
        trial = self.open.pop(0)
        overwrites = trial.hparams["overwrite_deepspeed_args"]
        micro, request_id = overwrites["train_micro_batch_size_per_gpu"], trial.request_id
        if "zero_optimization" not in overwrites:
            self.measured[request_id] = MODEL
        elif micro > most:
            return self.take(self.method.on_trial_exited_early(self.state, request_id, ExitedReason.ERRORED))
        else:
            assert overwrites["train_batch_size"] == micro * 3 * 2
            self.measured[request_id] = {"throughput": float(micro)}
        method, state = self.method, self.state
        assert not method.on_validation_completed(state, request_id, 0.0, self.lengths[request_id])
        return self.take(method.on_trial_closed(state, request_id))

    def play(self, most: int = MOST) -> Shutdown:
        end = self.take(self.method.initial_operations(self.state))
        while end is None:
            end = self.play_one(most)
        return end


@pytest.mark.parametrize("name", METHODS)
def test_a_search_tries_as_many_configs_as_it_may_and_finds_one_that_fits(name: str) -> None:
    search = Search(name)
    assert search.play() == Shutdown(failure=False)
    tracker = search.method.tracker
    assert tracker.completed == 16
    assert search.most_open == 2, "four slots hold two trials of two slots"
    assert set(search.lengths.values()) == {1, 6}
    assert all(trial.micro_batch >= 1 for trial in tracker.tuning)
    assert tracker.best is not None
    assert 10 < tracker.best.micro_batch <= MOST
    assert search.method.progress(search.state) == 1


@pytest.mark.parametrize("name", METHODS)
def test_a_search_goes_on_from_what_it_saved_as_if_it_had_not_stopped(name: str, tmp_path: Path) -> None:
    def tried(search: Search) -> list[tuple[int, int]]:
        return [(trial.stage, trial.micro_batch) for trial in search.method.tracker.tuning]

    straight = Search(name)
    straight.play()
    first = Search(name)
    first.take(first.method.initial_operations(first.state))
    for _ in range(7):
        assert first.play_one() is None
    first.method.save_method_state(tmp_path)
    second = Search(name)
    second.method.load_method_state(tmp_path)
    second.open, second.measured, second.lengths = first.open, first.measured, first.lengths
    while second.play_one() is None:
        pass
    assert tried(second) == tried(straight)
    best = json.loads((tmp_path / "best_ds_config.json").read_text())
    assert "autotuning" not in best
    assert best["zero_optimization"]["stage"] in {1, 2}


def test_a_search_whose_trainings_all_fail_has_failed() -> None:
    assert Search("binary", max_trials=5).play(most=0) == Shutdown(failure=True)


def test_a_search_ends_with_the_profile_of_the_model() -> None:
    search = Search("random")
    search.take(search.method.initial_operations(search.state))
    request_id = search.open[0].request_id
    for reason, failed in ((ExitedReason.ERRORED, True), (ExitedReason.USER_CANCELED, False)):
        ended = search.method.on_trial_exited_early(search.state, request_id, reason)
        assert ended == [Shutdown(failure=failed)]


def test_a_random_search_stops_early() -> None:
    search = Search("random", max_trials=64, early_stopping=3)
    assert search.play() == Shutdown(failure=False)
    assert search.method.tracker.completed < 64


@pytest.mark.parametrize(("stage", "most"), [(0, 42), (1, 44), (2, 45), (3, 46)])
def test_memory_that_ranks_share_leaves_room_for_records(stage: int, most: int) -> None:
    search = Search("binary")
    search.take(search.method.initial_operations(search.state))
    search.play_one()
    # Of 1 000 bytes: 40 of weights, 40 of gradients, 80 of the optimizer; each record takes 20.
    assert search.method.most_records(stage) == most


def test_a_config_is_merged_from_its_file_and_what_hyperparameters_overwrite(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(json.dumps({"a": {"b": 1, "c": 2}}))
    hparams = {"deepspeed_config": "ds.json", "overwrite_deepspeed_args": {"a": {"b": 3}}}
    assert dsat.get_ds_config_from_hparams(hparams, tmp_path) == {"a": {"b": 3, "c": 2}}
    with pytest.raises(AssertionError, match="deepspeed_config is missing"):
        dsat.get_ds_config_from_hparams({})


def test_arguments_of_hugging_face_agree_with_the_config(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text(json.dumps({"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 1}))
    given = ["--deepspeed", str(path), "--per_device_train_batch_size=2", "--seed", "1"]
    assert dsat.get_hf_args_with_overwrites(given, {}) is given
    hparams = {"overwrite_deepspeed_args": {"train_micro_batch_size_per_gpu": 8}}
    changed = dsat.get_hf_args_with_overwrites(given, hparams)
    assert changed == [
        *("--deepspeed", str(path), "--per_device_train_batch_size", "8", "--seed", "1"),
        *("--gradient_accumulation_steps", "1"),
    ]
    assert json.loads(path.read_text())["train_micro_batch_size_per_gpu"] == 8


@pytest.mark.parametrize("file", ["autotuning_metric.json", "model_info.json"])
def test_what_deepspeed_measured_is_reported_as_it_ends_the_process(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reports: list[tuple[int, dict[str, Any]]] = []
    with core.init() as context:
        monkeypatch.setattr(
            context.train,
            "report_validation_metrics",
            lambda steps, metrics: reports.append((steps, metrics)),
        )
        op = next(context.searcher.operations())
        Path(file).write_text(json.dumps({"throughput": 2.5, "activation_mem_per_gpu": 0}))
        with pytest.raises(SystemExit), dsat.dsat_reporting_context(context, op, steps_completed=4):
            raise SystemExit
    assert op.completed
    ((steps, metrics),) = reports
    assert steps == 4
    assert metrics["throughput"] == 2.5
    assert ("gpu_mem" in metrics) is (file == "model_info.json")


def test_an_end_without_a_measurement_reports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with core.init() as context:
        op = next(context.searcher.operations())
        with pytest.raises(SystemExit), dsat.dsat_reporting_context(context, op):
            raise SystemExit
        assert not op.completed


def test_the_command_line_describes_both_experiments(tmp_path: Path) -> None:
    config: dict[str, Any] = yaml.safe_load(
        "{name: x, description: d, entrypoint: python3 -m determined.launch.deepspeed t.py"
        " --deepspeed ds.json, resources: {slots_per_trial: 2}, hyperparameters: {deepspeed_config: ds.json}}"
    )
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "ds.json").write_text("{}")
    check_config(config, tmp_path / "code")
    with pytest.raises(ValueError, match="does not match the path in the entrypoint"):
        check_config({**config, "entrypoint": ["t.py", "--deepspeed", "other.json"]}, tmp_path / "code")
    arguments = parse_arguments(
        ["asha", "config.yaml", str(tmp_path / "code"), "-m", "latency", "--divisor", "3"]
    )
    runner = runner_config(config, arguments)
    assert (runner["name"], runner["resources"]["slots_per_trial"]) == ("(DSAT) x", 0)
    assert runner["description"] == "d", "the rest is the user's"
    assert runner["searcher"] == {"name": "single", "metric": "latency", "max_length": 1}
    searched = trial_config(config, arguments, runner=7)
    assert searched["description"] == "(#7) generated - d"
    assert searched["searcher"]["smaller_is_better"] is True
    assert searched["hyperparameters"]["_use_dsat_mode"] is True
    method = make_method(config, arguments)
    assert isinstance(method, dsat.ASHADSATSearchMethod)
    assert method.divisor == 3
    assert best_config(config, method) is None
    with pytest.raises(SystemExit):
        parse_arguments(["random", "config.yaml", "code", "-mt", "1"])

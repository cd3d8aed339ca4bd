from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.training.trials import LineTrial, local_context, newest_checkpoint
from torch import nn

from resolute import InvalidHP, pytorch
from resolute.pytorch import Batch, Epoch, PyTorchCallback, Trainer
from resolute.trial_errors import InvalidCheckpointException, InvalidExperimentException


def fit(directory: Path, trial_class: Any = LineTrial, **options: Any) -> Any:
    context, recorder = local_context(directory, aggregation_frequency=options.pop("aggregation", 1))
    trial = trial_class(context)
    options.setdefault("max_length", Batch(2))
    Trainer(trial, context).fit(**options)
    trial.reports = recorder
    return trial


class CallRecorder(PyTorchCallback):
    def __init__(self) -> None:
        self.lines: list[Any] = []

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if not name.startswith("on_"):
            return found

        def noted(*args: Any) -> Any:
            shown = [arg for arg in args if isinstance(arg, int)]
            self.lines.append((name.removeprefix("on_"), *shown))
            return found(*args)

        return noted

    def on_training_epoch_start(self, epoch_idx: int) -> None: ...


class RecordedTrial(LineTrial):
    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self.recorder = CallRecorder()

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        return {"recorder": self.recorder}


@pytest.mark.filterwarnings("ignore:on_checkpoint_end")
def test_callbacks_are_called_in_order(tmp_path: Path) -> None:
    trial = fit(
        tmp_path, RecordedTrial, max_length=Batch(6), checkpoint_policy="none", validation_period=Batch(6)
    )
    names = [" ".join(map(str, line)) for line in trial.recorder.lines if line[0] != "checkpoint_end"]
    assert names == [
        "trial_startup 0",
        "training_start",
        "training_epoch_start 0",
        "training_epoch_end 0",
        "training_epoch_start 1",
        "training_workload_end",
        "validation_start",
        "validation_epoch_start",
        "validation_epoch_end",
        "validation_end",
        "checkpoint_save_start",
        "checkpoint_write_end",
        "checkpoint_upload_end",
        "trial_shutdown",
    ]


def test_reports_validations_and_checkpoints_come_when_asked_for(tmp_path: Path) -> None:
    trial = fit(
        tmp_path,
        max_length=Epoch(2),
        reporting_period=Batch(4),
        validation_period=Batch([3, 7]),
        checkpoint_period=Epoch(1),
        checkpoint_policy="none",
        step_zero_validation=True,
    )
    training = trial.reports.of("training")
    assert [steps for steps, _ in training] == [3, 4, 5, 7, 8, 10]
    assert [steps for steps, _ in trial.reports.of("validation")] == [0, 3, 7, 10]
    assert set(training[0][1]) == {"loss", "absolute"}
    assert training[0][1]["loss"] == pytest.approx(training[0][1]["absolute"])
    steps = [json.loads(path.read_text())["steps_completed"] for path in tmp_path.glob("*/metadata.json")]
    assert sorted(steps) == [5, 10]


def test_a_checkpoint_has_the_documented_files(tmp_path: Path) -> None:
    fit(tmp_path)
    directory = tmp_path / newest_checkpoint(tmp_path)
    names = {path.name for path in directory.iterdir()}
    documented = {"state_dict.pth", "trial_state.pkl", "load_data.json", "metadata.json", "code"}
    assert names == documented | {"rank_state_0.pth"}
    state = torch.load(directory / "state_dict.pth", weights_only=False)
    assert set(state) == {
        "models_state_dict",
        "optimizers_state_dict",
        "lr_schedulers_state_dict",
        "callbacks",
        "rng_state",
        "trainable",
    }
    assert (
        json.loads((directory / "load_data.json").read_text())["trial_cls_spec"]
        == "support.training.trials:LineTrial"
    )
    metadata = json.loads((directory / "metadata.json").read_text())
    assert metadata["steps_completed"] == metadata["latest_batch"] == 2
    assert metadata["framework"].startswith("torch-")


def test_test_mode_trains_one_batch_validates_one_and_makes_a_checkpoint(tmp_path: Path) -> None:
    trial = fit(tmp_path, max_length=Epoch(9), test_mode=True)
    assert trial.seen == [0]
    assert [steps for steps, _ in trial.reports.of("validation")] == [1]
    assert newest_checkpoint(tmp_path)


def test_a_trial_can_ask_to_stop(tmp_path: Path) -> None:
    class Enough(LineTrial):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            self.context.set_stop_requested(batch_idx >= 2)
            return super().train_batch(batch, epoch_idx, batch_idx)

    assert fit(tmp_path, Enough, max_length=Batch(50), reporting_period=Batch(4)).seen == [0, 1, 2, 3]
    assert newest_checkpoint(tmp_path)


def test_validations_without_a_metric_are_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Silent(LineTrial):
        def evaluate_batch(self, batch: Any) -> dict[str, Any]:  # type: ignore[override]  # the older form
            return {}

    fit(tmp_path, Silent, max_length=Batch(4), validation_period=Batch(2))
    assert caplog.text.count("a validation has no metric") == 1


def test_refused_hyperparameters_leave_a_checkpoint_and_end_callbacks(tmp_path: Path) -> None:
    ended: list[str] = []

    class Ending(PyTorchCallback):
        def on_trial_shutdown(self) -> None:
            ended.append("ended")

    class Refusing(LineTrial):
        def build_callbacks(self) -> dict[str, PyTorchCallback]:
            return {"ending": Ending()}

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            if batch_idx == 3:
                raise InvalidHP("no good")
            return super().train_batch(batch, epoch_idx, batch_idx)

    with pytest.raises(InvalidHP):
        fit(tmp_path, Refusing, max_length=Batch(9))
    assert newest_checkpoint(tmp_path)
    assert ended == ["ended"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_length": None}, ValueError, "max_length must be given"),
        ({"max_length": 3}, TypeError, r"pytorch\.Batch\(number\)"),
        ({"max_length": Batch([1, 2])}, TypeError, r"pytorch\.Batch\(number\)"),
        ({"checkpoint_period": 10}, TypeError, "checkpoint_period is 10"),
        ({"checkpoint_policy": "some"}, ValueError, "'best', 'all' or 'none'"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        fit(tmp_path, **options)


def test_best_means_all_off_cluster_and_the_default_warns_of_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        fit(tmp_path, validation_period=Batch(1))
    # What this trial notes for tests is in no checkpoint, as it is warned of.
    assert [message for message in caplog.messages if "self.seen" not in message] == []
    assert len(list(tmp_path.glob("*/metadata.json"))) == 2


def variant(**members: Any) -> Any:
    return type("Variant", (LineTrial,), members)


PAIRS: Any = [(torch.ones(2), torch.ones(1))] * 8
CHECKS = "disable_dataset_reproducibility_checks"


def plain_loader(trial: Any) -> Any:
    return torch.utils.data.DataLoader(PAIRS, batch_size=4)


class OwnLoader(torch.utils.data.DataLoader[Any]):
    """One that may deal otherwise than torch's."""


def own_loader(trial: Any) -> Any:
    return OwnLoader(PAIRS, batch_size=4)


def empty_loader(trial: Any) -> Any:
    return pytorch.DataLoader(PAIRS, batch_size=9, drop_last=True)


def returning(value: Any) -> Any:
    """A method that returns a value whatever it is given."""
    return lambda *_: value


def renaming(*arguments: Any) -> Any:
    """A method whose metrics have the number of the batch in their names."""
    return {f"loss{arguments[-1]}": 1}


@pytest.mark.parametrize(
    ("members", "error", "message"),
    [
        (
            {"build_training_data_loader": own_loader},
            RuntimeError,
            "disable_dataset_reproducibility_checks",
        ),
        (
            {"build_validation_data_loader": own_loader},
            RuntimeError,
            "disable_dataset_reproducibility_checks",
        ),
        ({"build_training_data_loader": empty_loader}, RuntimeError, "training loader is empty"),
        ({"build_validation_data_loader": empty_loader}, RuntimeError, "validation_loader is empty"),
        ({"evaluate_batch": pytorch.PyTorchTrial.evaluate_batch}, InvalidExperimentException, "neither"),
        ({"evaluate_full_dataset": plain_loader}, InvalidExperimentException, "and not both"),
        ({"train_batch": renaming}, ValueError, "the same names"),
        ({"train_batch": returning(None)}, TypeError, "train_batch"),
        ({"evaluate_batch": renaming}, ValueError, "names must match"),
        ({"evaluate_batch": returning(1.0)}, TypeError, "must return a dict"),
        ({"evaluate_batch": returning({"loss": "low"})}, ValueError, "'loss' cannot be reduced .* by AVG"),
        ({"build_training_data_loader": returning([])}, RuntimeError, "returned a builtins.list"),
        ({"build_training_data_loader": returning(None)}, RuntimeError, "resolute.pytorch.DataLoader"),
        ({"build_callbacks": returning({"a": 1})}, TypeError, "PyTorchCallback"),
    ],
)
def test_trials_that_make_no_sense_are_refused(
    tmp_path: Path, members: dict[str, Any], error: type[BaseException], message: str
) -> None:
    with pytest.raises(error, match=message):
        fit(tmp_path, variant(**members))


def test_a_period_without_a_unit_is_refused(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path)
    with pytest.raises(
        TypeError, match=r"checkpoint_period is 5; pytorch\.Batch\(\.\.\.\) or pytorch\.Epoch"
    ):
        Trainer(LineTrial(context), context).fit(max_length=Batch(1), checkpoint_period=5)  # type: ignore[arg-type]


def test_a_step_mode_that_is_a_word_is_refused(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path)
    optimizer = context.wrap_optimizer(torch.optim.SGD(context.wrap_model(nn.Linear(1, 1)).parameters()))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.raises(TypeError, match=r"step_mode is .every.; an LRScheduler\.StepMode was expected"):
        context.wrap_lr_scheduler(scheduler, step_mode="every")  # type: ignore[arg-type]


def test_a_validation_without_any_metric_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fit(tmp_path, variant(evaluate_batch=returning({})))
    assert "the validation has no metric: return some from evaluate_batch()" in caplog.text


def test_a_trial_without_the_required_methods_cannot_be_made() -> None:
    class Half(pytorch.PyTorchTrial):
        def __init__(self, context: Any) -> None: ...

    with pytest.raises(TypeError, match="build_training_data_loader"):
        Half(None)  # type: ignore[abstract]


def test_what_is_no_trial_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="derived from"):
        Trainer(object(), local_context(tmp_path)[0])


def test_a_loader_of_torch_is_taken_when_checks_are_off(tmp_path: Path) -> None:
    class Own(LineTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.experimental.disable_dataset_reproducibility_checks()

        build_training_data_loader = plain_loader

    assert fit(tmp_path, Own, max_length=Epoch(3)).seen == list(range(6))


def test_a_whole_data_set_can_be_evaluated_at_once(tmp_path: Path) -> None:
    class Whole(LineTrial):
        evaluate_batch = pytorch.PyTorchTrial.evaluate_batch  # type: ignore[assignment]

        def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
            return {"batches": len(list(data_loader))}

    assert fit(tmp_path, Whole).reports.of("validation") == [(2, {"batches": 5})]


def test_a_checkpoint_of_another_trial_is_refused(tmp_path: Path) -> None:
    class Wider(LineTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.models = [nn.Linear(3, 3)]
            self.optimizer = torch.optim.SGD(context.models[0].parameters(), lr=0.1)
            context.optimizers = [self.optimizer]

    class Two(LineTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.wrap_model(nn.Linear(3, 3))

    fit(tmp_path)
    checkpoint = newest_checkpoint(tmp_path)
    for other, message in ((Wider, "does not fit this trial's Linear"), (Two, "has 1 models")):
        with pytest.raises(InvalidCheckpointException, match=message):
            fit(tmp_path, other, latest_checkpoint=checkpoint)


def test_a_model_that_is_compiled_trains_and_its_checkpoint_fits_one_that_is_not(tmp_path: Path) -> None:
    class Compiled(LineTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.models = []
            compiled = torch.compile(self.model, backend="eager")
            self.model = context.wrap_model(compiled)

    fit(tmp_path, Compiled)
    resumed = fit(tmp_path, max_length=Batch(3), latest_checkpoint=newest_checkpoint(tmp_path))
    assert resumed.seen == [2]


def test_the_profiler_of_torch_is_stepped_with_each_batch(tmp_path: Path) -> None:
    traces: list[int] = []

    class Profiled(LineTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.set_profiler(
                activities=[torch.profiler.ProfilerActivity.CPU],
                schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=1),
                on_trace_ready=lambda profiler: traces.append(profiler.step_num),
            )

    fit(tmp_path, Profiled, max_length=Batch(4))
    assert traces == [3]


def test_the_older_switch_of_profiling_says_that_it_has_no_effect(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    context, _ = local_context(tmp_path)
    Trainer(LineTrial(context), context).configure_profiler(enabled=True, end_after_batch=3)
    assert "use fit(profiling_enabled=True)" in caplog.text


def test_a_trial_may_ask_where_training_is(tmp_path: Path) -> None:
    class Asking(LineTrial):
        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            context = self.context
            assert (context.current_train_epoch(), context.current_train_batch()) == (epoch_idx, batch_idx)
            self.state[str(batch_idx)] = (context.is_epoch_start(), context.is_epoch_end())
            return super().train_batch(batch, epoch_idx, batch_idx)

    state = fit(tmp_path, Asking, max_length=Batch(7)).state
    assert [batch for batch, (start, _) in state.items() if start] == ["0", "5"]
    assert [batch for batch, (_, end) in state.items() if end] == ["4"]
    resumed = fit(tmp_path, Asking, max_length=Batch(8), latest_checkpoint=newest_checkpoint(tmp_path))
    assert resumed.seen == [7]
    assert resumed.context.get_initial_batch() == 7


def test_metrics_of_batches_are_reduced_as_the_trial_says(tmp_path: Path) -> None:
    def sizes(trial: Any, batch: Any) -> dict[str, Any]:
        return {"size": len(batch[0]), "largest": batch[0].max()}

    reducers = {"size": pytorch.Reducer.SUM, "largest": pytorch.Reducer.MAX}
    reduced = fit(tmp_path, variant(evaluate_batch=sizes, evaluation_reducer=returning(reducers)))
    ((_, metrics),) = reduced.reports.of("validation")
    assert metrics["size"] == 40
    assert metrics["largest"] > 1
    with pytest.raises(ValueError, match="they must be the same"):
        fit(tmp_path, variant(evaluation_reducer=returning({"size": pytorch.Reducer.SUM})))


def test_batches_stay_where_the_loader_put_them_if_the_trial_moves_them(tmp_path: Path) -> None:
    class Moving(LineTrial):
        def __init__(self, context: Any) -> None:
            super().__init__(context)
            context.experimental.disable_auto_to_device()

        def build_training_data_loader(self) -> Any:
            return pytorch.DataLoader(PAIRS, batch_size=4, collate_fn=lambda _: np.ones((4, 3)))

        def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> Any:
            assert isinstance(batch, np.ndarray)
            moved = self.context.to_device(batch).float()
            return super().train_batch((moved[:, :2], moved[:, 2:]), epoch_idx, batch_idx)

    assert fit(tmp_path, Moving).seen == [0, 1]


def test_a_trial_that_goes_on_is_not_validated_before_its_first_batch_again(tmp_path: Path) -> None:
    fit(tmp_path, step_zero_validation=True)
    options = {"latest_checkpoint": newest_checkpoint(tmp_path), "max_length": Batch(4)}
    resumed = fit(tmp_path, step_zero_validation=True, **options)
    assert [steps for steps, _ in resumed.reports.of("validation")] == [4]


def test_a_checkpoint_says_how_its_trial_is_made_again(tmp_path: Path) -> None:
    context, _ = local_context(tmp_path, hparams={"global_batch_size": 8, "lr": 0.1}, exp_conf={"name": "x"})
    Trainer(LineTrial(context), context).fit(max_length=Batch(1))
    directory = tmp_path / newest_checkpoint(tmp_path)
    assert json.loads((directory / "load_data.json").read_text()) == {
        "trial_type": "PyTorchTrial",
        "experiment_config": {"name": "x"},
        "hparams": {"global_batch_size": 8, "lr": 0.1},
        "trial_cls_spec": "support.training.trials:LineTrial",
        "is_trainer": True,
        "trial_in_main": False,
    }
    state = torch.load(directory / "state_dict.pth", weights_only=False)
    assert {"cpu_rng_state", "np_rng_state", "random_rng_state"} <= set(state["rng_state"])
    counters = pickle.loads((directory / "trial_state.pkl").read_bytes())
    documented = {"trial_id", "last_ckpt", "step_id", "last_val", "batches_trained", "epochs_trained"}
    assert documented <= set(counters)
    assert counters["batches_trained"] == counters["last_ckpt"] == counters["last_val"] == 1

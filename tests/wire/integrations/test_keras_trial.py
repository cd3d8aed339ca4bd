"""A ``TFKerasTrial`` as the trial of a real search, by the harness's own way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.training.keras_models import BATCHES, same, weights
from support.training.keras_trials import LineTrial

import resolute
from resolute.keras import load_model_from_checkpoint_path
from resolute.keras.trial import training
from resolute.runtime.experiment_config import ExperimentConfig
from resolute.trials.trial_state import TrialState

# Keras gives its arrays of torch to h5py, which asks for them in NumPy's newer way.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning")

LENGTH = 3 * BATCHES + 2


def train(latest: str | None = None, kind: type[LineTrial] = LineTrial, **config: Any) -> LineTrial:
    """Trains the trial of this process as far as its search wants."""
    info = resolute.get_cluster_info()
    assert info is not None
    info.trial.hparams["global_batch_size"] = 8
    info._latest_checkpoint = latest
    merged = ExperimentConfig({**info.trial._config, "scheduling_unit": 4, **config})
    training.train(kind, info, merged)
    return LineTrial.made.pop()


def saved(folder: Path) -> Path:
    """The one checkpoint of the trial of a folder."""
    (found,) = (folder / "checkpoints").glob("*/load_data.json")
    return found.parent


def steps_of(file: Path) -> int:
    """How many batches were trained at the checkpoint that a file is of."""
    state = TrialState.read(file.parent)
    assert state is not None
    return state.batches_trained


def start_trial(start: Any, **options: Any) -> Any:
    return start(max_length=LENGTH, metric="val_loss", **options)


def test_a_paused_trial_continues_as_if_it_had_never_stopped(start: Any, tmp_path: Path) -> None:
    with start_trial(start):
        straight = train()
    with start_trial(start, folder="again") as trial:

        class Paused(LineTrial):
            def build_model(self) -> Any:
                model = super().build_model()
                step = model.train_step

                def counted(batch: Any) -> Any:
                    if sum(call[0] == "batch end" for call in self.called) == 6:
                        trial.flags.set_signal(revision=1, preempt=True)
                    return step(batch)

                model.train_step = counted
                return model

        first = train(kind=Paused)
        checkpoint = saved(tmp_path / "again").name
        trial.flags.set_signal(revision=2, preempt=False)
        second = train(checkpoint)
    assert same(weights(second.context.model), weights(straight.context.model))
    trained = [[call for call in run.called if call[0] == "batch end"] for run in (first, second, straight)]
    assert trained[0] + trained[1] == trained[2]
    assert len(trained[0]) == 7
    assert second.hooks.epochs == straight.hooks.epochs == 3
    assert same(second.hooks.begun_with, first.context.model.get_weights()), "callbacks begin after the load"


def test_it_reports_calls_its_hooks_and_leaves_a_model_behind(start: Any, tmp_path: Path) -> None:
    with start_trial(start) as trial:
        trained = train(min_validation_period={"batches": 8})
        assert trial.flags.acknowledged
        training = trial.series("training", "mae")
        validation = trial.series("validation", "val_mae")
    assert [step for step, _ in training] == [4, 8, 12, 16, 17]
    assert [step for step, _ in validation] == [8, 16, 17]
    assert validation[-1][1] < validation[0][1]

    called = trained.called
    assert called[:4] == [("epoch begin", 0), ("workload begin", 0, 4), ("batch begin", 0), ("batch end", 0)]
    end = called.index(("epoch end", 0, {}))
    assert called[end - 2 : end] == [("batch begin", 4), ("batch end", 4)]
    assert called[end + 1] == ("epoch begin", 1)
    assert called.count(("test end", ["val_loss", "val_mae"])) == 3

    latest = max((tmp_path / "checkpoints").glob("*/load_data.json"), key=steps_of).parent
    model = load_model_from_checkpoint_path(str(latest))
    assert same(model.get_weights(), trained.context.model.get_weights())


def test_a_trial_of_several_slots_is_refused_with_what_to_do(start: Any) -> None:
    with start_trial(start):
        info = resolute.get_cluster_info()
        assert info is not None
        info.slot_ids = [0, 1]
        with pytest.raises(ValueError, match=r"trains on one slot, .* slots_per_trial: 1"):
            training.train(LineTrial, info, ExperimentConfig({}))

"""What loaders of a ``TFKerasTrial`` may return, and the order in which it is read."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from resolute.keras import SequenceAdapter, TFKerasTrialContext, _ArrayLikeAdapter
from resolute.keras.trial.data import adapt_data, training_batches, weigh_classes
from resolute.trial_errors import InvalidDataTypeException, InvalidExperimentException


class Numbers(keras.utils.PyDataset):  # type: ignore[misc, unused-ignore]
    """Its batches are their own numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[int] = []
        self.read = 0

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Any:
        self.read += 1
        return index

    def on_epoch_end(self) -> None:
        self.passes.append(self.read)


def read(data: Any, count: int, **options: Any) -> list[int]:
    chosen = {"step": 0, "seed": 7, "shuffle": True, "workers": 1, "queue_size": 10, **options}
    return list(islice(training_batches(data, **chosen), count))


@pytest.mark.parametrize("workers", [1, 3])
def test_the_order_depends_on_the_seed_and_can_be_taken_up_anywhere(workers: int) -> None:
    straight = read(Numbers(), 13, workers=workers)
    assert sorted(straight[:5]) == sorted(straight[5:10]) == list(range(5))
    assert straight[:5] != straight[5:10]
    assert read(Numbers(), 13 - 7, step=7, workers=workers) == straight[7:]
    assert read(Numbers(), 13, seed=8) != straight
    assert read(Numbers(), 7, shuffle=False) == [0, 1, 2, 3, 4, 0, 1]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_sequence_is_told_of_the_end_of_each_pass_before_the_next_begins(workers: int) -> None:
    data = Numbers()
    read(data, 11, workers=workers)
    assert data.passes == [5, 10]


def test_arrays_become_batches_of_the_same_structure() -> None:
    x, y = {"a": np.arange(7), "b": [np.arange(7), np.arange(7)]}, np.arange(7)
    batches = _ArrayLikeAdapter(x, y, 3, sample_weights=y)
    assert len(batches) == 3
    inputs, targets, weights = batches[2]
    assert inputs["a"].tolist() == inputs["b"][1].tolist() == targets.tolist() == weights.tolist() == [6]
    assert len(_ArrayLikeAdapter(x, y, 3, drop_leftovers=True)) == 2


def test_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        ValueError, match="Batch size is too large for the input data: a batch of 9, 7 records"
    ):
        _ArrayLikeAdapter(np.arange(7), np.arange(7), 9)
    with pytest.raises(ValueError, match="equally many records"):
        _ArrayLikeAdapter(np.arange(7), np.arange(6), 2)
    with pytest.raises(InvalidDataTypeException, match="an array, or a list or dict of arrays"):
        _ArrayLikeAdapter("text", np.arange(4), 2)


def test_loaders_results_are_taken_or_refused_by_name() -> None:
    numbers = Numbers()
    assert adapt_data(SequenceAdapter(numbers, workers=2), batch_size=2, wrapped=False) is numbers
    assert adapt_data(numbers, batch_size=2, wrapped=False) is numbers
    assert len(adapt_data((np.arange(4), np.arange(4)), batch_size=2, wrapped=False)) == 2
    with pytest.raises(InvalidDataTypeException, match="input_data is invalid type"):
        adapt_data(np.arange(4), batch_size=2, wrapped=False)
    dataset = type("Dataset", (), {"element_spec": None, "repeat": None})()
    with pytest.raises(InvalidExperimentException, match=r"use either context\.wrap_dataset"):
        adapt_data(dataset, batch_size=2, wrapped=False)
    assert adapt_data(dataset, batch_size=2, wrapped=True) is dataset


def test_weights_of_classes_are_weights_of_records() -> None:
    x = np.zeros((3, 2))
    assert weigh_classes((x, np.array([0, 1, 1])), {0: 2.0})[2].tolist() == [2, 1, 1]
    assert weigh_classes((x, np.eye(2)[[1, 0, 0]]), {1: 3.0})[2].tolist() == [3, 1, 1]
    assert weigh_classes((x, None), None) == (x, None, None)


def test_configure_fit_overrides_only_what_it_names() -> None:
    from resolute.core import _dummy_init

    context = TFKerasTrialContext(_dummy_init(), hparams=None, exp_conf=None, trial_seed=1)
    context.configure_fit(workers=3, class_weight={0: 1.0})
    context.configure_fit(shuffle=False)
    options = context._fit_options
    assert (options.workers, options.class_weight, options.shuffle) == (3, {0: 1.0}, False)
    context.configure_fit(class_weight=None)
    assert options.class_weight is None
    with pytest.raises(RuntimeError, match="cache_train_dataset"):
        context.experimental.cache_train_dataset()


def test_a_context_can_be_made_of_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    hparams = {"global_batch_size": 8, "lr": {"type": "double", "minval": 0.1, "maxval": 0.2}}
    config = {"hyperparameters": hparams, "reproducibility": {"experiment_seed": 7}, "data": {"path": "/d"}}
    context, again = (TFKerasTrialContext.from_config(config) for _ in range(2))
    assert 0.1 <= context.get_hparam("lr") < 0.2
    assert context.get_hparams() == again.get_hparams()
    assert (context.get_per_slot_batch_size(), context.get_trial_seed()) == (8, 7)
    assert context.get_data_config() == {"path": "/d"}

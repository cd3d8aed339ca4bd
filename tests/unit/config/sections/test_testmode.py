"""Test mode."""

from typing import Any

from unit.config.conftest import Accept

from resolute_config.loading.parse import parse_config
from resolute_config.sections.hyperparameters import Const, leaves
from resolute_config.sections.length import Length
from resolute_config.sections.searcher import SingleSearcher
from resolute_config.test_mode import to_test_mode

SPACE = {
    "c": 3,
    "n": {"type": "int", "minval": -2, "maxval": 2},
    "deep": {
        "d": {"type": "double", "minval": 0.5, "maxval": 1},
        "l": {"type": "log", "base": 10, "minval": -3, "maxval": -1},
    },
    "k": {"type": "categorical", "vals": ["a", None]},
}
SEARCH = {
    "name": "adaptive_asha",
    "metric": "acc",
    "smaller_is_better": False,
    "max_length": {"epochs": 64},
    "max_trials": 16,
    "source_trial_id": 4,
}


def test_one_trial_of_one_batch_that_keeps_nothing_and_never_restarts(accept: Accept) -> None:
    test = to_test_mode(accept(searcher=SEARCH, max_restarts=9, data={"x": 1}))
    assert test.searcher == SingleSearcher(
        metric="acc", smaller_is_better=False, max_length=Length(1, "batches"), source_trial_id=4
    )
    assert test.scheduling_unit == 1
    assert test.min_validation_period == Length(1, "batches")
    assert test.max_restarts == 0
    storage = test.checkpoint_storage
    assert (storage.save_experiment_best, storage.save_trial_best, storage.save_trial_latest) == (0, 0, 0)
    assert (test.name, test.data, test.entrypoint) == ("digits", {"x": 1}, "python3 train.py")


def test_hyperparameters_are_drawn_from_their_ranges(accept: Accept) -> None:
    for seed in range(50):
        config = accept(hyperparameters=SPACE, reproducibility={"experiment_seed": seed})
        drawn: dict[str, Any] = {}
        for path, leaf in leaves(to_test_mode(config).hyperparameters):
            assert isinstance(leaf, Const)
            drawn[".".join(path)] = leaf.val
        assert list(drawn) == ["c", "n", "deep.d", "deep.l", "k"]
        assert drawn["c"] == 3
        assert drawn["n"] in range(-2, 3)
        assert 0.5 <= drawn["deep.d"] <= 1
        assert 0.001 <= drawn["deep.l"] <= 0.1
        assert drawn["k"] in ("a", None)


def test_equal_seeds_give_equal_tests_and_other_seeds_others(accept: Accept) -> None:
    one, same, other = (
        to_test_mode(accept(hyperparameters=SPACE, reproducibility={"experiment_seed": seed}))
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one.hyperparameters != other.hyperparameters


def test_a_test_config_is_a_config_like_any_other(accept: Accept) -> None:
    test = to_test_mode(accept(searcher=SEARCH, hyperparameters=SPACE))
    assert parse_config(test.to_dict()) == test

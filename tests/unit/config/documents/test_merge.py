"""Merging layers: each rule, and that the order of merging does not matter where the rules say so."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolute_config.loading.merge import merge

SCALARS = st.one_of(st.booleans(), st.integers(-3, 3), st.sampled_from(["a", "b"]))
NAMES = st.sampled_from(["x", "y", "z"])


def in_section(*path: str, value: Any) -> dict[str, Any]:
    for step in reversed(path):
        value = {step: value}
    return dict(value)


def merged(*path: str, higher: Any, lower: Any) -> Any:
    """Merge two values that stand at a path of two documents."""
    result: Any = merge(in_section(*path, value=higher), in_section(*path, value=lower))
    for step in path:
        result = result[step]
    return result


def test_of_scalars_the_higher_layers_counts() -> None:
    assert merge({"name": "mine"}, {"name": "template", "debug": True}) == {"name": "mine", "debug": True}


def test_maps_merge_at_every_depth() -> None:
    assert merged("data", higher={"a": {"x": 1, "y": 2}, "b": 3}, lower={"a": {"y": 5, "z": 6}, "c": 7}) == {
        "a": {"x": 1, "y": 2, "z": 6},
        "b": 3,
        "c": 7,
    }


@pytest.mark.parametrize("path", [("labels",), ("entrypoint",), ("slurm", "sbatch_args"), ("data", "files")])
def test_lists_replace_each_other(path: tuple[str, ...]) -> None:
    assert merged(*path, higher=["b"], lower=["a", "c"]) == ["b"]
    assert merged(*path, higher=[], lower=["a"]) == []


def test_null_does_not_override() -> None:
    assert merge({"name": None, "data": {"x": None}}, {"name": "t", "data": {"x": 1}}) == {
        "name": "t",
        "data": {"x": 1},
    }
    assert merge({"name": "mine"}, {"name": None}) == {"name": "mine"}
    assert merge({"data": {"x": None}}, {}) == {"data": {"x": None}}


@pytest.mark.parametrize("path", [("bind_mounts",), ("resources", "devices")])
def test_mounts_are_appended_and_the_higher_layers_hides_one_at_its_path(path: tuple[str, ...]) -> None:
    mine = [{"host_path": "/mine", "container_path": "/c"}]
    below = [{"host_path": "/t", "container_path": "/t"}, {"host_path": "/hidden", "container_path": "/c"}]
    assert merged(*path, higher=mine, lower=below) == [*mine, below[0]]


def policy(name: str | None = None, pattern: str | None = None, action: str | None = None) -> dict[str, Any]:
    given = {"name": name, "pattern": pattern, "action": action and {"type": action}}
    return {field: value for field, value in given.items() if value is not None}


def test_log_policies_are_appended_after_the_higher_layers() -> None:
    mine, below = policy("b", "2", "exclude_node"), policy("a", "1", "cancel_retries")
    assert merged("log_policies", higher=[mine], lower=[below]) == [mine, below]


def test_a_log_policy_overrides_the_lower_layers_one_of_its_name() -> None:
    below = [policy("oom", ".*memory.*"), policy("ecc", ".*ECC.*")]
    mine = policy("oom", "OOM", "cancel_retries")
    assert merged("log_policies", higher=[mine], lower=below) == [mine, below[1]]


def test_a_name_alone_disables_the_lower_layers_log_policy() -> None:
    assert merged("log_policies", higher=[policy("oom")], lower=[policy("oom", ".*memory.*")]) == [
        policy("oom")
    ]


def test_log_policies_without_a_name_are_one_if_pattern_and_action_are() -> None:
    nameless = policy(None, "1", "cancel_retries")
    other = policy(None, "1", "exclude_node")
    same = {"action": {"type": "cancel_retries"}, "pattern": "1"}
    assert merged("log_policies", higher=[same], lower=[nameless, other]) == [same, other]
    named = policy("x", "1", "cancel_retries")
    assert merged("log_policies", higher=[named], lower=[policy("y", "1", "cancel_retries")]) == [
        named,
        policy("y", "1", "cancel_retries"),
    ]


VARIABLES = ("environment", "environment_variables")


def test_environment_variables_are_appended_so_that_the_higher_layer_overrides() -> None:
    assert merged(*VARIABLES, higher=["A=2"], lower=["A=1", "B=1"]) == ["A=1", "B=1", "A=2"]


def test_environment_variables_are_appended_for_each_device_class() -> None:
    assert merged(
        *VARIABLES, higher={"cpu": ["A=2"], "rocm": ["R"]}, lower={"cpu": ["A=1"], "cuda": ["C"]}
    ) == {
        "cpu": ["A=1", "A=2"],
        "cuda": ["C"],
        "rocm": ["R"],
    }


def test_a_list_of_environment_variables_is_for_every_device_class() -> None:
    assert merged(*VARIABLES, higher={"cuda": ["A=2"]}, lower=["A=1"]) == {
        "cpu": ["A=1"],
        "cuda": ["A=1", "A=2"],
        "rocm": ["A=1"],
    }
    assert merged(*VARIABLES, higher=["A=2"], lower={"cuda": ["A=1"]}) == {
        "cpu": ["A=2"],
        "cuda": ["A=1", "A=2"],
        "rocm": ["A=2"],
    }


def test_a_typed_hyperparameter_is_replaced_whole() -> None:
    ranged = {"type": "int", "minval": 1, "maxval": 2}
    for mine in (
        {"type": "const", "val": 1},
        5,
        None,
        [1],
        {"type": "int", "minval": 0, "maxval": 9, "count": 3},
    ):
        assert merged("hyperparameters", higher={"x": mine}, lower={"x": ranged}) == {"x": mine}
        assert merged("hyperparameters", higher={"x": ranged}, lower={"x": mine}) == {"x": ranged}


def test_maps_of_hyperparameters_merge_at_every_depth() -> None:
    higher = {"optimizer": {"lr": 0.1, "deep": {"a": 1}}, "b": None}
    lower = {"optimizer": {"lr": 0.2, "momentum": 0.9, "deep": {"c": 2}}, "d": 4}
    assert merged("hyperparameters", higher=higher, lower=lower) == {
        "optimizer": {"lr": 0.1, "momentum": 0.9, "deep": {"a": 1, "c": 2}},
        "b": None,
        "d": 4,
    }


def test_a_map_with_a_hyperparameter_called_type_is_no_typed_hyperparameter() -> None:
    called = {"type": {"type": "const", "val": "adam"}}
    assert merged("hyperparameters", higher={"o": called}, lower={"o": {"lr": 1}}) == {
        "o": {**called, "lr": 1}
    }
    assert merged("hyperparameters", higher={"type": "x"}, lower={"lr": 1}) == {"type": "x", "lr": 1}


@pytest.mark.parametrize(("section", "tag"), [("searcher", "name"), ("checkpoint_storage", "type")])
def test_fields_of_one_kind_merge_only_with_their_like(section: str, tag: str) -> None:
    assert merged(section, higher={tag: "a", "x": 1}, lower={tag: "a", "x": 2, "y": 2}) == {
        tag: "a",
        "x": 1,
        "y": 2,
    }
    assert merged(section, higher={tag: "a", "x": 1}, lower={tag: "b", "y": 2}) == {tag: "a", "x": 1}


@pytest.mark.parametrize(
    ("section", "tag", "fields"),
    [
        (
            "searcher",
            "name",
            {"metric": "m", "smaller_is_better": False, "source_trial_id": 3, "source_checkpoint_uuid": "u"},
        ),
        (
            "checkpoint_storage",
            "type",
            {"save_experiment_best": 2, "save_trial_best": 3, "save_trial_latest": 10},
        ),
    ],
)
def test_fields_of_all_kinds_merge_over_another_kind(section: str, tag: str, fields: dict[str, Any]) -> None:
    assert merged(section, higher={tag: "a"}, lower={tag: "b", "y": 2, **fields}) == {tag: "a", **fields}
    for field, value in fields.items():
        assert merged(section, higher={tag: "a", field: 1}, lower={tag: "b", field: value}) == {
            tag: "a",
            field: 1,
        }


@pytest.mark.parametrize(("section", "tag"), [("searcher", "name"), ("checkpoint_storage", "type")])
def test_a_section_that_does_not_name_its_kind_takes_the_others(section: str, tag: str) -> None:
    assert merged(section, higher={"x": 1}, lower={tag: "b", "y": 2}) == {tag: "b", "x": 1, "y": 2}
    assert merged(section, higher={tag: "b", "x": 1}, lower={"y": 2}) == {tag: "b", "x": 1, "y": 2}
    assert merged(section, higher={tag: None, "x": 1}, lower={tag: "b"}) == {tag: "b", "x": 1}


@pytest.mark.parametrize(
    "path", [("searcher", "max_length"), ("min_validation_period",), ("min_checkpoint_period",)]
)
def test_lengths_of_different_units_replace_each_other(path: tuple[str, ...]) -> None:
    assert merged(*path, higher={"epochs": 1}, lower={"batches": 100}) == {"epochs": 1}


@pytest.mark.parametrize(
    "path",
    [("bind_mounts",), ("log_policies",), VARIABLES, ("hyperparameters",), ("searcher",), ("resources",)],
)
def test_values_of_unexpected_shape_are_replaced_for_validation_to_name(path: tuple[str, ...]) -> None:
    assert merged(*path, higher=5, lower={"a": [1]}) == 5
    assert merged(*path, higher={"a": 1}, lower="text") == {"a": 1}
    assert merged(*path, higher=[1], lower=5) == [1]


LENGTHS = st.one_of(
    SCALARS, st.dictionaries(st.sampled_from(["batches", "epochs"]), SCALARS, min_size=1, max_size=1)
)
MOUNTS = st.lists(st.fixed_dictionaries({"container_path": NAMES, "host_path": SCALARS}), max_size=3)
POLICIES = st.lists(st.fixed_dictionaries({"name": NAMES}, optional={"pattern": NAMES}), max_size=3)
LISTED = st.lists(st.sampled_from(["A=1", "A=2", "B"]), max_size=3)
BY_CLASS = st.dictionaries(st.sampled_from(["cpu", "cuda", "rocm"]), LISTED, max_size=3)
HYPERPARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "lr": st.one_of(
            SCALARS, st.none(), st.fixed_dictionaries({"type": st.just("const"), "val": SCALARS})
        ),
        "deep": st.fixed_dictionaries({}, optional={"a": st.one_of(SCALARS, st.none()), "b": SCALARS}),
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(st.none(), SCALARS),
        "labels": st.lists(NAMES, max_size=2),
        "data": st.fixed_dictionaries(
            {},
            optional={"x": SCALARS, "m": st.dictionaries(NAMES, SCALARS), "l": st.lists(SCALARS, max_size=2)},
        ),
        "min_validation_period": LENGTHS,
        "bind_mounts": MOUNTS,
        "resources": st.fixed_dictionaries({}, optional={"devices": MOUNTS, "weight": SCALARS}),
        "log_policies": POLICIES,
        "environment": st.fixed_dictionaries(
            {}, optional={"environment_variables": st.one_of(LISTED, BY_CLASS)}
        ),
        "hyperparameters": HYPERPARAMETERS,
        # Of one kind: of sections of different kinds, the order of merging decides which fields are dropped.
        "searcher": st.fixed_dictionaries(
            {"name": st.just("grid")}, optional={"metric": NAMES, "max_length": LENGTHS}
        ),
    },
)


def effective(document: dict[str, Any]) -> dict[str, Any]:
    """A document with variables per class, for a list of them means the same as a map of equal lists."""
    seen = copy.deepcopy(document)
    variables = seen.get("environment", {}).get("environment_variables")
    if variables is not None:
        by_class = (
            variables if isinstance(variables, dict) else dict.fromkeys(("cpu", "cuda", "rocm"), variables)
        )
        seen["environment"]["environment_variables"] = {
            name: value for name, value in by_class.items() if value
        }
    return {name: value for name, value in seen.items() if value is not None}


@given(DOCUMENTS, DOCUMENTS, DOCUMENTS)
def test_merging_is_associative(high: dict[str, Any], middle: dict[str, Any], low: dict[str, Any]) -> None:
    assert effective(merge(high, merge(middle, low))) == effective(merge(merge(high, middle), low))


@given(DOCUMENTS)
def test_an_empty_layer_changes_nothing(document: dict[str, Any]) -> None:
    assert merge(document, {}) == document
    assert merge({}, document) == document


@given(DOCUMENTS, DOCUMENTS)
def test_merging_leaves_its_arguments_as_they_were(high: dict[str, Any], low: dict[str, Any]) -> None:
    before = copy.deepcopy((high, low))
    merge(high, low)
    assert (high, low) == before

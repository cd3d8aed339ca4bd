"""The two phases, the layers, and the checks between sections."""

from typing import Any

import pytest
from unit.config.conftest import Accept, Refuse

from resolute.contracts.documents.faults import ConfigError, Fault
from resolute_config.layer import Layer
from resolute_config.loading.parse import parse_config
from resolute_config.sections.storage import S3Storage, SharedFsStorage

CLUSTER = Layer("cluster defaults", {"checkpoint_storage": {"type": "shared_fs", "host_path": "/cluster"}})


def faults(text: Any, *layers: Layer, **options: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(text, layers=layers, **options)
    return [str(fault) for fault in caught.value.faults]


def test_yaml_and_the_data_that_it_means_give_the_same_config(good: dict[str, Any]) -> None:
    text = """
        name: digits
        entrypoint: python3 train.py
        searcher: {name: single, metric: loss, max_length: {batches: 100}}
        checkpoint_storage: {type: shared_fs, host_path: /data}
        reproducibility: {experiment_seed: 7}
    """
    assert parse_config(text) == parse_config(text.encode()) == parse_config(good)


def test_the_user_is_over_the_template_and_the_template_over_the_cluster() -> None:
    template = Layer(
        "template 'gpu'",
        "resources: {slots_per_trial: 8, priority: 10}\n"
        "environment: {environment_variables: [A=t]}\n"
        "checkpoint_storage: {save_trial_best: 3}\n"
        "searcher: {name: random, metric: acc, max_trials: 4}\n",
    )
    cluster = Layer(
        "cluster defaults",
        {
            "checkpoint_storage": {"type": "shared_fs", "host_path": "/cluster", "save_trial_latest": 5},
            "resources": {"priority": 42, "weight": 2},
            "environment": {"environment_variables": ["A=c"]},
        },
    )
    text = "{entrypoint: x, searcher: {max_trials: 2}, environment: {environment_variables: [A=u]}}"
    config = parse_config(text, layers=[template, cluster])
    assert (config.resources.slots_per_trial, config.resources.priority, config.resources.weight) == (
        8,
        10,
        2,
    )
    assert config.environment.environment_variables.cuda == ("A=c", "A=t", "A=u")
    assert config.checkpoint_storage == SharedFsStorage(
        host_path="/cluster", save_trial_best=3, save_trial_latest=5
    )
    assert config.searcher.model_dump(include={"name", "metric", "max_trials"}) == {
        "name": "random",
        "metric": "acc",
        "max_trials": 2,
    }


def test_storage_of_another_type_replaces_the_clusters_whole(accept: Accept) -> None:
    config = accept(checkpoint_storage={"type": "s3", "bucket": "b"}, layers=(CLUSTER,))
    assert config.checkpoint_storage == S3Storage(bucket="b")


def test_what_is_missing_in_one_layer_may_come_from_another() -> None:
    template = Layer("template", {"searcher": {"metric": "loss"}, "entrypoint": "x", "workspace": "w"})
    config = parse_config({"searcher": {"name": "single"}, "project": "p"}, layers=[template, CLUSTER])
    assert (config.searcher.metric, config.workspace, config.project) == ("loss", "w", "p")


def test_a_fault_of_another_layer_is_reported_with_its_name_even_when_it_is_overridden(
    good: dict[str, Any],
) -> None:
    template = Layer("template 'old'", {"resources": {"priority": 500}, "nmae": "x"})
    assert faults({**good, "resources": {"priority": 5}}, template) == [
        "nmae (in template 'old'): unknown field; did you mean 'name'?",
        "resources.priority (in template 'old'): found 500; expected 99 or less",
    ]


def test_unreadable_layers_are_all_reported() -> None:
    assert [fault.split(":")[0] for fault in faults("a: [", Layer("template 't'", "- x"), CLUSTER)] == [
        "line 1, column 5",
        "found a list of 1; expected a map of fields at the top level (in template 't')",
    ]


def test_layers_that_contradict_each_other_are_reported_once_merged() -> None:
    text = {"entrypoint": "x", "searcher": {"name": "single", "metric": "m", "source_trial_id": 1}}
    template = Layer("template", {"searcher": {"name": "single", "source_checkpoint_uuid": "u"}})
    (fault,) = faults({**text, "resources": {"max_slots": 4}}, template, CLUSTER)
    assert fault.startswith(
        "searcher.source_checkpoint_uuid: source_trial_id and source_checkpoint_uuid are both"
    )
    needy = Layer("template", {"resources": {"slots_per_trial": 8}})
    (fault,) = faults({**text, "resources": {"max_slots": 4}}, needy, CLUSTER)
    assert fault.startswith("resources.max_slots: found 4; expected slots_per_trial (8) or more")


def test_a_limit_below_the_default_is_right_when_another_layer_makes_it_so(good: dict[str, Any]) -> None:
    template = Layer("template", {"resources": {"slots_per_trial": 0}})
    assert parse_config({**good, "resources": {"max_slots": 0}}, layers=[template]).resources.max_slots == 0


def test_both_phases_report_in_one_error() -> None:
    text = """
        searcher: {name: random, max_length: 0.5}
        resources: {slots_per_trial: -1}
        workspace: w
        bnid_mounts: 1
    """
    assert [fault.split(":")[0] for fault in faults(text)] == [
        "bnid_mounts",
        "searcher.max_length",
        "resources.slots_per_trial",
        "searcher.metric",
        "searcher.max_trials",
        "checkpoint_storage",
        "project",
        "entrypoint",
    ]


def test_a_fault_in_a_list_that_merging_moves_is_reported_once(good: dict[str, Any]) -> None:
    template = Layer("template", {"log_policies": [{"pattern": "x", "action": "cancel_retries"}]})
    text = {**good, "log_policies": [{"pattern": "(", "action": "cancel_retries"}, {"pattern": "y"}]}
    assert [fault.split(":")[0] for fault in faults(text, template)] == [
        "log_policies[0].pattern",
        "log_policies[1].action",
    ]


def test_values_that_json_cannot_hold_are_listed_among_the_other_faults(good: dict[str, Any]) -> None:
    text = {
        **good,
        "hyperparameters": {"lr": float("inf")},
        "debug": 1,
        "searcher": {"name": {1, 2}, "metric": "m"},
    }
    assert [fault.split(":")[0] for fault in faults(text)] == ["searcher.name", "hyperparameters.lr", "debug"]


def test_an_empty_config_is_told_all_that_it_lacks() -> None:
    assert [fault.split(":")[0] for fault in faults("")] == ["searcher", "checkpoint_storage", "entrypoint"]


def test_a_run_that_is_only_recorded_needs_no_entrypoint(good: dict[str, Any]) -> None:
    del good["entrypoint"]
    assert faults(good) == [
        "entrypoint: missing; expected the command that trains, such as: entrypoint: python3 train.py"
    ]
    assert parse_config(good, require_entrypoint=False).entrypoint is None


@pytest.mark.parametrize(
    ("entrypoint", "size", "slots", "fault"),
    [
        (
            "model_def:Trial",
            4,
            8,
            "global_batch_size 4 is less than slots; expected resources.slots_per_trial (8) or",
        ),
        ("pkg.model_def:Trial", {"type": "const", "val": 1}, 2, "global_batch_size 1 is less than slots"),
        ("model_def:Trial", "many", 1, 'found "many"; expected an integer of 1 or more, for a Trial class'),
        ("model_def:Trial", True, 1, "found true; expected an integer of 1 or more, for a Trial class"),
        ("model_def:Trial", 1.5, 1, "found 1.5; expected an integer of 1 or more, for a Trial class"),
    ],
)
def test_a_trial_class_needs_a_batch_for_its_slots(
    refuse: Refuse, entrypoint: str, size: Any, slots: int, fault: str
) -> None:
    found = refuse(
        entrypoint=entrypoint,
        hyperparameters={"global_batch_size": size},
        resources={"slots_per_trial": slots},
    )
    assert len(found) == 1
    assert found[0].startswith(f"hyperparameters.global_batch_size: {fault}")


@pytest.mark.parametrize(
    ("entrypoint", "size"),
    [
        ("model_def:Trial", 8),
        ("model_def:Trial", 8.0),
        ("model_def:Trial", {"type": "int", "minval": 1, "maxval": 4}),
        ("python3 train.py", 4),
        ("python3 -m thing:Trial", 4),
        (["model_def:Trial"], 4),
        (":Trial", 4),
    ],
)
def test_other_entrypoints_and_drawn_batch_sizes_are_not_checked(
    accept: Accept, entrypoint: Any, size: Any
) -> None:
    assert accept(
        entrypoint=entrypoint, hyperparameters={"global_batch_size": size}, resources={"slots_per_trial": 8}
    )


def test_checks_between_good_sections_run_beside_faulty_ones(refuse: Refuse) -> None:
    grid = {"name": "grid", "metric": "m"}
    found = refuse(
        searcher=grid, hyperparameters={"n": {"type": "int", "minval": 0, "maxval": 1}}, environment=5, nope=1
    )
    assert [fault.split(":")[0] for fault in found] == ["nope", "environment", "hyperparameters.n.count"]


def test_the_error_gives_its_faults_to_programs() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config("{searcher: {name: grid}, debug: 5}", layers=[CLUSTER], require_entrypoint=False)
    assert caught.value.faults[0] == Fault("debug", "found 5", "true or false")
    assert caught.value.faults[0].reason == "found 5; expected true or false"
    assert str(caught.value) == (
        "the experiment config has 2 faults:\n"
        "  debug: found 5; expected true or false\n"
        "  searcher.metric: missing; expected the name of the validation metric that the search compares"
    )
    with pytest.raises(ValueError, match="at least one fault"):
        ConfigError([])


def test_a_config_cannot_be_changed(accept: Accept) -> None:
    config = accept()
    with pytest.raises(ValueError, match="frozen"):
        config.name = "other"

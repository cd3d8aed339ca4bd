"""What people mistake in configs, and what they are told."""

from __future__ import annotations

from typing import Any

import pytest

from resolute.contracts.documents.faults import ConfigError
from resolute_config.doubtful_values import doubtful_values
from resolute_config.experiment import ExperimentConfig
from resolute_config.loading.parse import parse_config
from resolute_experiments.admission.missing_scripts import missing_script

RANDOM = {"name": "random", "metric": "loss", "max_length": 1, "max_trials": 2}
VARIES = {"lr": {"type": "double", "minval": 0, "maxval": 1}}


def config(**fields: Any) -> ExperimentConfig:
    return parse_config(
        {
            "name": "mistaken",
            "entrypoint": "python3 train.py",
            "searcher": RANDOM,
            "hyperparameters": VARIES,
            "checkpoint_storage": {"type": "directory", "container_path": "/tmp/checkpoints"},
            "reproducibility": {"experiment_seed": 1},
            **fields,
        }
    )


LOG = {"base": 10, "minval": -4, "maxval": -1}
DOUBLE = {"type": "double", "min": 0, "max": 1}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"hyperparameters": {"lr": {"typ": "log", **LOG}}}, "lr.typ: unknown field; did you mean 'type'?"),
    (
        {"hyperparameters": {"net": {"lr": {"tpye": "log"}}}},
        "net.lr.tpye: unknown field; did you mean 'type'?",
    ),
    ({"hyperparameters": {"lr": {"kind": "log", **LOG}}}, "lr.kind: unknown field; did you mean 'type'?"),
    (
        {"hyperparameters": {"type": "log", **LOG}},
        "hyperparameters.type: one hyperparameter without its name",
    ),
    ({"hyperparameters": {"lr": LOG}}, "lr.type: missing; expected int, double or log"),
    ({"hyperparameters": {"lr": {"vals": [1, 2]}}}, "lr.type: missing; expected categorical"),
    ({"hyperparameters": {"lr": DOUBLE}}, "lr.min: unknown field; did you mean 'minval'?"),
    (
        {"hyperparameters": {"lr": {"type": "categorical", "vals": "1, 2"}}},
        'lr.vals: found "1, 2"; expected a list',
    ),
    ({"hyperparameters": {"lr": {"type": "categorical"}}}, "lr.vals: missing; expected the list of values"),
    (
        {"hyperparameters": {"lr": {"type": "log", "minval": 0, "maxval": 1}}},
        "lr.base: missing; expected the base",
    ),
    (
        {"searcher": {**RANDOM, "max_trails": 2}},
        "searcher.max_trails: unknown field; did you mean 'max_trials'?",
    ),
    ({"environment": {"environment_variables": {"A": 1}}}, 'expected a list of "NAME=value"'),
    (
        {"checkpoint_storage": {"type": "s3", "bucket": "s3://weights"}},
        'bucket: found "s3://weights"; expected letters',
    ),
    (
        {"checkpoint_storage": {"type": "gcs", "bucket": "weights/a"}},
        'bucket: found "weights/a"; expected letters',
    ),
    (
        {"checkpoint_storage": {"type": "azure", "container": "Weights", "account_url": "https://a"}},
        'container: found "Weights"; expected lower-case letters',
    ),
]


@pytest.mark.parametrize(("fields", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_a_mistake_is_refused_with_what_was_meant(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        config(**fields)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    "group",
    [
        {"minval": {"type": "const", "val": 0}, "maxval": {"type": "const", "val": 1}},
        {"base": 10, "count": 3, "val": 1},
        {"style": "log", "x": 1},
        {"kind": "int"},
    ],
)
def test_groups_that_look_like_no_hyperparameter_are_taken(group: dict[str, Any]) -> None:
    config(hyperparameters={"group": group})


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (
            {"minval": 0.0001, "maxval": 0.1},
            "goes from 1.0002 to 1.2589: its minval and maxval are exponents of 10; from 0.0001 to 0.1",
        ),
        ({"minval": 16, "maxval": 256}, "from 16 to 256 is minval: 1.204, maxval: 2.408"),
        ({"minval": 0.001, "maxval": 1}, "from 0.001 to 1 is minval: -3, maxval: 0"),
        ({"minval": 0.0001, "maxval": 10}, "its minval and maxval are exponents of 10; from 0.0001 to 10 is"),
        ({"base": 1, "minval": -4, "maxval": -1}, "is always 1"),
        ({"minval": 0.5, "maxval": 2}, ""),
        ({"minval": -4, "maxval": -1}, ""),
        ({"minval": 0, "maxval": 3}, ""),
    ],
)
def test_bounds_of_a_log_that_look_like_values_are_told(bounds: dict[str, Any], said: str) -> None:
    told = list(doubtful_values(config(hyperparameters={"lr": {"type": "log", "base": 10, **bounds}})))
    assert [said in one for one in told] == [True] * bool(said)


@pytest.mark.parametrize(
    ("group", "told"),
    [
        ({"min": 0.1, "max": 1}, True),
        ({"minVal": 0, "maxVal": 1}, True),
        ({"distribution": "log_uniform", "min": 1e-4, "max": 1}, True),
        ({"low": 0, "high": 1, "log": True}, True),
        ({"values": [1, 2]}, True),
        ({"lr": {"choices": ["adam"]}}, True),
        ({"min": 0.1}, False),
        ({"min": 0.1, "max": 1, "mode": "crop"}, False),
        ({"min": {"type": "double", "minval": 0, "maxval": 1}, "max": 1}, False),
        ({"values": 3}, False),
    ],
)
def test_a_group_that_looks_like_a_range_of_another_tool_is_told(group: dict[str, Any], told: bool) -> None:
    found = list(doubtful_values(config(hyperparameters={**VARIES, "group": group})))
    assert ["is a group of constants" in one for one in found] == [True] * told


def test_a_random_search_of_constants_is_told() -> None:
    (told,) = doubtful_values(config(hyperparameters={"lr": 0.1}))
    assert told.startswith("searcher.max_trials is 2 and no hyperparameter varies")
    assert not list(doubtful_values(config()))


FILES = frozenset({"train.py", "models", "models/net.py", "package/__main__.py", "link", "run.sh"})


@pytest.mark.parametrize(
    ("entrypoint", "missing"),
    [
        ("python3 train.py", ""),
        (
            "python3 tain.py",
            "the script 'tain.py' is not in the directory that was submitted; did you mean 'train.py'?",
        ),
        ("python -u -O ./tain.py --lr 1", "'./tain.py' is not in the directory"),
        (["python3", "models/nett.py"], "did you mean 'models/net.py'?"),
        (
            "A=1 bash start.sh",
            "the script 'start.sh' is not in the directory that was submitted; submit it, and see that",
        ),
        ("./start.sh", "the script './start.sh' is not"),
        ("python3 -m resolute_launch.torch_distributed -- python3 tain.py", "the script 'tain.py' is not"),
        ("python3 -m resolute_launch.torch_distributed -- python3 train.py", ""),
        ("models.net:Trial", ""),
        ("model_def:Trial", "the module 'model_def' is not in the directory"),
        ("json:Trial", ""),
        ("cd models && python3 nett.py", ""),
        ("python3 /opt/tain.py", ""),
        ("python3 -c 'print(1)'", ""),
        ("python3 -m anything", ""),
        ("accelerate launch tain.py", ""),
        ("bash -lc 'python train.py'", ""),
        ("bash -eo pipefail start.sh", ""),
        ("bash -e start.sh", "the script 'start.sh' is not"),
        ("sh -ec ./go", ""),
        ("python3 -um train", ""),
        ("python3 -Im models.net", ""),
        ("python3 -W ignore tain.py", ""),
        ("python3 -u", ""),
        ("python3 models", ""),
        ("python3 package", ""),
        ("python3 .", ""),
        ("python3 link/train.py", ""),
    ],
)
def test_a_script_that_is_not_there_is_named(entrypoint: Any, missing: str) -> None:
    found = missing_script(config(entrypoint=entrypoint), FILES, runs_here=True)
    assert (missing in found.description) if found else not missing


def test_a_directory_of_very_many_files_is_not_looked_through_for_what_was_meant() -> None:
    """That took seconds, in which the cluster answered nobody."""
    many = {*FILES, *(f"data/{number}" for number in range(3000))}
    found = missing_script(config(entrypoint="python3 tain.py"), many, runs_here=True)
    assert found is not None
    assert "the script 'tain.py' is not in the directory" in found.description
    assert "did you mean" not in found.description


def test_what_a_hook_a_mount_or_an_image_may_provide_is_not_missed() -> None:
    mounts = [{"host_path": "/data", "container_path": "data"}]
    tain = config(entrypoint="python3 tain.py")
    assert missing_script(tain, FILES, runs_here=False)
    assert not missing_script(tain, {*FILES, "startup-hook.sh"}, runs_here=True)
    assert not missing_script(tain, (), runs_here=True)
    assert not missing_script(config(entrypoint="python3 tain.py", bind_mounts=mounts), FILES, runs_here=True)


def test_a_module_is_missed_only_where_it_is_known_what_is_installed() -> None:
    assert missing_script(config(entrypoint="model_def:Trial"), FILES, runs_here=True)
    assert not missing_script(config(entrypoint="model_def:Trial"), FILES, runs_here=False)
    variables = {"environment_variables": ["PYTHONPATH=/opt/models"]}
    elsewhere = config(entrypoint="model_def:Trial", environment=variables)
    assert not missing_script(elsewhere, FILES, runs_here=True)

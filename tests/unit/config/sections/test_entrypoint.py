"""Telling Trial classes from commands."""

import pytest

from resolute_config.sections.entrypoint import is_trial_class, runs_trial_class


@pytest.mark.parametrize("entrypoint", ["model_def:Trial", "a.b.c:T_1", "__init__:T"])
def test_a_module_and_a_class_are_a_trial_class(entrypoint: str) -> None:
    assert is_trial_class(entrypoint)
    assert runs_trial_class(entrypoint)


@pytest.mark.parametrize(
    "entrypoint",
    [
        ":Trial",
        "model_def:",
        "model_def:A.B",
        "a b:C",
        "python3 train.py",
        "a:b:c",
        "a-b:C",
        ("model_def:Trial",),
        None,
    ],
)
def test_anything_else_is_a_command(entrypoint: str | tuple[str, ...] | None) -> None:
    assert not is_trial_class(entrypoint)
    assert not runs_trial_class(entrypoint)


@pytest.mark.parametrize(
    "entrypoint",
    [
        "python3 -m determined.launch.torch_distributed --trial model_def:Trial",
        ("python3", "-m", "determined.launch.deepspeed", "--trial", "model_def:Trial"),
        "python3 -m determined.exec.harness model_def:Trial",
        "python3 -m resolute_launch.harness model_def:Trial",
        "python3 -m determined.launch.autohorovod model_def:Trial",
    ],
)
def test_commands_that_name_the_harness_run_a_trial_class(entrypoint: str | tuple[str, ...]) -> None:
    assert not is_trial_class(entrypoint)
    assert runs_trial_class(entrypoint)


def test_a_script_with_a_flag_of_a_similar_name_does_not() -> None:
    assert not runs_trial_class("python3 train.py --trials 5")

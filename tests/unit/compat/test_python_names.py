"""What a script of any release imports is there, or the import says in one sentence what to use instead."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import determined
from determined import pytorch

ROOT = Path(__file__).resolve().parents[3]
NAMES = ROOT / "tools" / "determined_names" / "python_names.txt"
WALK = r"""
import importlib, re, sys

LIBRARIES = {"deepspeed", "keras", "lightning", "tensorboard", "tensorflow", "transformers"}
SENTENCE = re.compile(r"[\w.]+ is not available: \S[^\n]+")


def is_clear(failure):
    if isinstance(failure, ModuleNotFoundError):
        return failure.name in LIBRARIES  # which is not installed here
    return isinstance(failure, ImportError) and SENTENCE.fullmatch(str(failure))


count = 0
for line in open(sys.argv[1]):
    module, *names = line.split()
    for name in [] if module == "#" else names:
        count += 1
        try:
            exec(f"from {module} import {name}")
        except Exception as failure:
            if not is_clear(failure):
                print(f"from {module} import {name}: {failure!r}")
print(count)
"""


def test_no_name_of_any_release_fails_bare() -> None:
    command = [sys.executable, "-W", "ignore", "-c", WALK, str(NAMES)]
    environment = {"PYTHONPATH": str(ROOT / "compat"), "KERAS_BACKEND": "torch", "HOME": "/nonexistent"}
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert result.returncode == 0, result.stderr
    *bare, count = result.stdout.splitlines()
    assert bare == []
    assert int(count) > 900


@pytest.mark.parametrize("name", ["model_hub", "determined_cli", "determined_common", "determined_deploy"])
def test_packages_beside_it_are_refused_alone(name: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", f"import {name}"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "compat")},
    )
    assert f"ImportError: {name} is not available: " in result.stderr


def test_an_attribute_is_refused_as_its_import_is() -> None:
    api = importlib.import_module("determined.common.api")
    cli, launch = importlib.import_module("determined.cli"), importlib.import_module("determined.launch")
    for owner, name in (
        (api, "bindings"),
        (api, "Session"),
        (cli, "render"),
        (launch, "sshd"),
        (determined, "layers"),
        (pytorch, "PyTorchTrialController"),
    ):
        with pytest.raises(ImportError, match=rf"{name} is not available: "):
            getattr(owner, name)


def test_modules_that_are_there_are_found_beside_those_that_are_refused() -> None:
    launch = importlib.import_module("determined.launch")
    assert callable(launch.torch_distributed.main)
    assert not hasattr(launch, "_private")
    with pytest.raises(
        ImportError, match=r"determined\.launch\.deepspeed\.create_sshd_cmd is not available: "
    ):
        launch.deepspeed.create_sshd_cmd  # noqa: B018 - asked for


def test_what_no_release_had_is_missing_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'determined\.pytroch'"):
        __import__("determined.pytroch")
    assert not hasattr(determined, "nothing")
    assert not hasattr(pytorch, "nothing")

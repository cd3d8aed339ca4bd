"""What a script of any release imports is there, or the import says in one sentence what to use instead."""

from __future__ import annotations

import importlib
import pickle
import re
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
            exec(f"from {module} import {name}", {})
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
    assert int(count) > 1400


def test_private_modules_are_refused_by_name_and_private_attributes_are_not_there() -> None:
    for name in ("determined._env_context", "determined.pytorch._trainer", "determined.core._checkpoint"):
        package = name.rpartition(".")[0]
        with pytest.raises(ImportError, match=rf"{name} is not available: it was private; {package} has"):
            importlib.import_module(name)
    with pytest.raises(ImportError, match="it was private"):
        exec("from determined.pytorch import _trainer")
    assert not hasattr(pytorch, "_trainer")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("determined.__nowhere__")


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


@pytest.mark.parametrize(
    "name",
    ["determined.cli.tunnel", "determined.deploy.local", "determined.exec.worker_process", "model_hub"],
)
def test_a_program_that_is_not_there_is_refused_by_name(name: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", name],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(ROOT / "compat")},
    )
    assert result.returncode == 1
    refused = name.removesuffix(".local")
    assert re.search(rf"{refused} is not available: \S", result.stderr.splitlines()[-1])


def test_an_attribute_is_refused_as_its_import_is() -> None:
    api = importlib.import_module("determined.common.api")
    for owner, name in (
        (api, "authentication"),
        (determined, "layers"),
        (pytorch, "PyTorchTrialController"),
    ):
        with pytest.raises(AttributeError, match=rf"{name} is not available: "):
            getattr(owner, name)


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("determined.util", "Dict", "import Dict from typing"),
        ("determined.util", "logging", "import it as others do: import logging"),
        ("determined.keras.callbacks", "logger", r'.*logging\.getLogger\("determined"\)'),
        ("determined.tensorboard.util", "find_tb_files", "determined.tensorboard itself has"),
        ("determined.pytorch.deepspeed", "_trainer", "it was private; determined.pytorch.deepspeed has"),
    ],
)
def test_what_a_module_had_besides_is_refused_with_what_to_use(module: str, name: str, instead: str) -> None:
    with pytest.raises(ImportError, match=rf"{module}\.{name} is not available: {instead}"):
        exec(f"from {module} import {name}", {})
    assert not hasattr(importlib.import_module(module), name), "as pickle asks"


def test_what_a_module_has_is_asked_of_it_as_before() -> None:
    from determined.__version__ import __version__
    from determined.experimental import client, core_v2

    older = importlib.import_module("determined.common.experimental.experiment")
    assert determined.__version__ == __version__
    assert client.ExperimentState.COMPLETED in older.TERMINAL_STATES
    assert client.ExperimentState.ACTIVE not in older.TERMINAL_STATES
    assert core_v2.info is None


@pytest.mark.parametrize(
    ("package", "name"),
    [("determined.common.api", "Session"), ("determined.cli", "render"), ("determined.launch", "sshd")],
)
def test_what_a_package_does_not_have_is_an_attribute_error_with_the_sentence(
    package: str, name: str
) -> None:
    module = importlib.import_module(package)
    assert not hasattr(module, name), "as pickle asks"
    with pytest.raises(AttributeError, match=rf"{package}\.{name} is not available: \S"):
        getattr(module, name)


def test_functions_of_no_module_are_pickled_beside_these_packages() -> None:
    importlib.import_module("determined.tensorboard.metric_writers")
    importlib.import_module("determined.common.api")
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(of_no_module)


def of_no_module() -> None: ...


of_no_module.__module__ = None  # type: ignore[assignment] # as functions of C: pickle looks in every module
of_no_module.__qualname__ = of_no_module.__name__ = "found_nowhere"


def test_modules_that_are_there_are_found_beside_those_that_are_refused() -> None:
    launch = importlib.import_module("determined.launch")
    assert callable(launch.torch_distributed.main)
    assert not hasattr(launch, "_private")
    with pytest.raises(
        AttributeError, match=r"determined\.launch\.deepspeed\.create_sshd_cmd is not available: "
    ):
        launch.deepspeed.create_sshd_cmd  # noqa: B018 - asked for


def test_the_command_line_is_found_where_releases_had_it() -> None:
    from determined.cli import cli  # type: ignore[attr-defined] # found by the finder

    assert cli.main is importlib.import_module("determined.cli").main


def test_what_no_release_had_is_missing_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'determined\.pytroch'"):
        __import__("determined.pytroch")
    assert not hasattr(determined, "nothing")
    assert not hasattr(pytorch, "nothing")

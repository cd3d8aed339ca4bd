"""Which code a checkpoint keeps."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.file_systems import as_somebody_else

from resolute.trials.code.source import copy_code


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """A class of a module that lies in a directory of its own, which everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="resolute-code-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        module: Any = ModuleType("script_of_a_user")
        module.__file__ = str(directory / "script_of_a_user.py")
        Path(module.__file__).write_text("class Mine: ...\n")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        yield type("Mine", (), {"__module__": module.__name__, "directory": directory})


def kept(trial: type, destination: Path) -> set[str]:
    copy_code(trial, destination, on_cluster=False)
    return {str(path.relative_to(destination)) for path in destination.rglob("*") if path.is_file()}


def test_what_a_script_imports_is_kept_and_environments_are_not(script: Any, tmp_path: Path) -> None:
    for name in ("package/layers.py", "venv/lib/other.py", "venv/pyvenv.cfg", ".hidden/seen.py", "data.bin"):
        (script.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (script.directory / name).touch()
    assert kept(script, tmp_path / "code") == {"script_of_a_user.py", "package/layers.py"}


@pytest.mark.parametrize("mode", [0o000, 0o444], ids=["closed", "listed only"])
def test_what_may_not_be_read_is_left_behind(script: Any, mode: int) -> None:
    closed, secret = script.directory / "closed", script.directory / "secret.py"
    closed.mkdir()
    (closed / "inside.py").touch()
    secret.touch()
    secret.chmod(0o000)
    closed.chmod(mode)
    with as_somebody_else(), tempfile.TemporaryDirectory() as destination:
        assert kept(script, Path(destination) / "code") == {"script_of_a_user.py"}

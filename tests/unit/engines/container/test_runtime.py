"""The runtime that is mounted into containers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from resolute.errors import FailedPreconditionError
from resolute_engines.container import runtime
from resolute_engines.container.runtime import make_runtime, parts, runtime_name

_HASH_UNCHECKED = 1
"""The flags of compiled code that nobody compares with its source (PEP 552)."""
_SUPERVISOR = """
import sys
sys.path[:0] = [sys.argv[1]]
import resolute_launch.supervisor.executor
for module in list(sys.modules.values()):
    print(getattr(module, "__cached__", None) or "")
"""


def test_what_a_supervisor_imports_is_compiled_once(tmp_path: Path) -> None:
    make_runtime(tmp_path / "runtime")
    (site,) = (tmp_path / "runtime").glob("cp*/site")
    said = subprocess.run(
        [sys.executable, "-I", "-B", "-c", _SUPERVISOR, str(site)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    compiled = [Path(line) for line in said.stdout.split() if line.startswith(str(site))]
    assert len(compiled) > 100
    for path in compiled:
        code = path.read_bytes()
        assert code[:4] == importlib.util.MAGIC_NUMBER
        assert int.from_bytes(code[4:8], "little") == _HASH_UNCHECKED, path


def test_the_runtime_of_another_version_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "_copy_packages", lambda site: site.mkdir())
    make_runtime(tmp_path)
    make_runtime(tmp_path)
    (tag,) = parts(tmp_path)
    assert parts(tmp_path) == {tag: runtime_name()}

    start = (tmp_path / "start.sh").stat().st_ino
    for python, name in ((tag, "0.0.1-0123456789ab"), ("cp399", "0.0.1-0123456789ab"), ("cp398", "")):
        part = tmp_path / python
        part.mkdir(exist_ok=True)
        (part / "name").write_text(name)
        with pytest.raises(FailedPreconditionError, match=f"{python} is of Resolute {name}, and this is"):
            make_runtime(tmp_path)
        (part / "name").write_text(runtime_name())
    make_runtime(tmp_path)
    assert (tmp_path / "start.sh").stat().st_ino == start


def test_the_command_says_what_to_do_with_a_runtime_that_does_not_say_its_version(tmp_path: Path) -> None:
    (tmp_path / f"cp{sys.version_info.major}{sys.version_info.minor}").mkdir()
    command = [sys.executable, "-m", "resolute_engines.container.runtime", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert said.returncode == 1
    assert f"is of Resolute 0.1.0, and this is {runtime_name()}: `mv {tmp_path}" in said.stderr

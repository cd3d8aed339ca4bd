"""The runtime that is mounted into containers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from resolute_experiments.resources.container.runtime import make_runtime

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

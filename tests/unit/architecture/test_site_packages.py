"""A run of tests fails if it changes what is installed in the environment that it runs in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
# In place of the environment of these tests, which stays as it is.
ELSEWHERE = """
import site
from pathlib import Path

site.getsitepackages = lambda: [str(Path(__file__).parent / "site-packages")]
"""


TEST = """
from pathlib import Path

INSTALLED = Path({installed!r})


def test_it():
    {change}
"""
CACHED = "cached = INSTALLED / '__pycache__'; cached.mkdir(); (cached / 'six.pyc').touch()"
INSTALLS = "(INSTALLED / 'six.py').write_text('2'); (INSTALLED / 'rich.py').rename(INSTALLED / 'timm.py')"


@pytest.mark.parametrize(
    ("change", "differs"),
    [(CACHED, []), (INSTALLS, ["added {}/timm.py", "changed {}/six.py", "removed {}/rich.py"])],
    ids=["cached", "installed"],
)
def test_a_test_that_changes_what_is_installed_fails_the_run(
    tmp_path: Path, change: str, differs: list[str]
) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    for name in ("six.py", "rich.py"):
        (installed / name).write_text("1")
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text() + ELSEWHERE)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {TESTS}\n")
    (tmp_path / "test_it.py").write_text(TEST.format(installed=str(installed), change=change))
    command = [sys.executable, "-m", "pytest", "-q", "--guard-environment", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == bool(differs)
    expected = [line.format(installed) for line in differs]
    expected = expected or ["site-packages: 2 files, unchanged by the tests"]
    assert set(expected) <= set(done.stdout.splitlines())

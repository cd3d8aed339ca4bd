"""What is installed in the environment of tests and of their clusters: no test may change it."""

from __future__ import annotations

import os
import site
from collections.abc import Iterator, Mapping

import pytest

_SHOWN = 20


def installed_files() -> dict[str, str]:
    """Size, time and links of each file in the site-packages of this interpreter, by path.

    Bytecode is left out: it is written as modules are imported. Contents are not read: what installs a file
    gives it another time.
    """
    return {path: _facts(path) for place in site.getsitepackages() for path in _files(place)}


def changed_files(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Names what differs, as ``added``, ``removed`` or ``changed`` and a path."""
    added = [f"added {path}" for path in after.keys() - before.keys()]
    removed = [f"removed {path}" for path in before.keys() - after.keys()]
    changed = [f"changed {path}" for path in before.keys() & after.keys() if before[path] != after[path]]
    return sorted([*added, *removed, *changed])


class UnchangedSitePackages:
    """Fails a run of tests after which something else is installed than before it."""

    def __init__(self) -> None:
        self._before: dict[str, str] = {}
        self._changes: list[str] = []

    def pytest_sessionstart(self) -> None:
        self._before = installed_files()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._changes = changed_files(self._before, installed_files())
        if self._changes:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._changes:
            terminalreporter.write_line(f"site-packages: {len(self._before)} files, unchanged by the tests")
            return
        terminalreporter.section("the tests changed what is installed", red=True)
        for change in self._changes[:_SHOWN]:
            terminalreporter.write_line(change)
        if len(self._changes) > _SHOWN:
            terminalreporter.write_line(f"and {len(self._changes) - _SHOWN} more")


def _files(place: str) -> Iterator[str]:
    for folder, folders, names in os.walk(place):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (f"{folder}/{name}" for name in names)


def _facts(path: str) -> str:
    status = os.lstat(path)
    return f"{status.st_mode:o} {status.st_size} {status.st_mtime_ns}"

"""Checks of this machine: versions, disks and limits."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from resolute.contracts import distribution
from resolute.contracts.distribution import install_command
from resolute_embedded.doctor.findings import Finding, fault, good, warning
from resolute_embedded.home.state_directory import StateDirectory

_PACKAGES = (distribution.NAME, "grpcio", "protobuf", "sqlalchemy", "alembic", "pydantic")
_OLDEST_PYTHON = (3, 10)
_OLDEST_SQLITE = (3, 35, 0)
"""The first that can drop and rename columns, which migrations may want."""
_LITTLE_SPACE = 5 << 30
_NO_SPACE = 256 << 20
_FEW_FILES = 4096


def check_machine(state: StateDirectory) -> Iterator[Finding]:
    """Looks at versions, free space and limits."""
    yield _versions()
    yield _sqlite()
    for name, path in (("disk of the home", state.home.path), ("disk of the checkpoints", state.checkpoints)):
        yield _space(name, path)
    yield _open_files()


def _versions() -> Finding:
    if sys.version_info < _OLDEST_PYTHON:
        return fault("versions", f"Python {sys.version.split()[0]}", remedy="use Python 3.10 or later")
    versions = [f"Python {sys.version.split()[0]}"]
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            return fault("versions", f"{name} is not installed", remedy=f"run `{install_command('server')}`")
    return good("versions", ", ".join(versions))


def _sqlite() -> Finding:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        return fault(
            "SQLite",
            f"Python was built with SQLite {sqlite3.sqlite_version}",
            remedy="use a Python whose SQLite is 3.35 or later",
        )
    return good("SQLite", sqlite3.sqlite_version)


def _space(subject: str, path: Path) -> Finding:
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    detail = f"{free / (1 << 30):.1f} GiB free at {existing}"
    if free < _NO_SPACE:
        return fault(subject, detail, remedy="free some space: nothing can be recorded when the disk is full")
    if free < _LITTLE_SPACE:
        return warning(
            subject, detail, remedy="free some space, or delete checkpoints: `resolute experiment delete`"
        )
    return good(subject, detail)


def _open_files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)  # which `resolute up` raises the soft one to
    detail = f"a process may open {hard} files, {len(os.listdir('/proc/self/fd'))} are open here"  # noqa: PTH208
    if hard < _FEW_FILES:
        remedy = "raise the hard limit: LimitNOFILE= of the unit, or /etc/security/limits.conf"
        return warning("open files", detail, remedy=remedy)
    return good("open files", detail)

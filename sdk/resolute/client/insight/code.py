"""The code of two experiments, file by file."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resolute.client.downloads.model_definition import save_model_definition, unpack_model_definition
from resolute.client.remote.experiments import Experiments

_MAX_DIFF_LINES = 500
_MAX_TEXT_BYTES = 1024 * 1024
"""Larger files are compared, but their lines are not shown."""


@dataclass(frozen=True, slots=True)
class CodeDifference:
    """A file that differs."""

    path: str
    change: str
    """``added`` (only in the second), ``removed`` (only in the first), or ``changed``."""
    diff: str
    """Unified, at most 500 lines; empty for files that are large or no text."""


def read_code(experiments: Experiments, key: str) -> dict[str, bytes]:
    """Reads the files of an experiment's model definition, by path; none if it has none."""
    if not experiments.get(key).model_definition_size:
        return {}
    with tempfile.TemporaryDirectory(prefix="resolute-") as scratch:
        archive = save_model_definition(experiments, key, Path(scratch) / "code.tgz")
        directory = Path(scratch) / "code"
        unpack_model_definition(archive, directory)
        return {
            path.relative_to(directory).as_posix(): path.read_bytes()
            for path in sorted(directory.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }


def code_differences(a: Mapping[str, bytes], b: Mapping[str, bytes]) -> list[CodeDifference]:
    """Finds the files that differ, by path."""
    differences = []
    for path in sorted({*a, *b}):
        first, second = a.get(path), b.get(path)
        if first != second:
            change = "added" if first is None else "removed" if second is None else "changed"
            differences.append(CodeDifference(path, change, _diff(path, first or b"", second or b"")))
    return differences


def _diff(path: str, first: bytes, second: bytes) -> str:
    if max(len(first), len(second)) > _MAX_TEXT_BYTES:
        return ""
    try:
        old, new = (data.decode().splitlines() for data in (first, second))
    except UnicodeDecodeError:
        return ""
    lines = list(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm=""))
    if len(lines) > _MAX_DIFF_LINES:
        lines[_MAX_DIFF_LINES:] = [f"... {len(lines) - _MAX_DIFF_LINES} more lines"]
    return "\n".join(lines)

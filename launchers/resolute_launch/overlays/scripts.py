"""Scripts of one environment that the interpreter of another one is to run."""

from __future__ import annotations

import re
from pathlib import Path

_HEAD_BYTES = 1024
_INTERPRETER = re.compile(
    rb"#!(?P<line>[^\n]*/python[0-9.]*)\n|#!/bin/sh\n'''exec' (?P<command>[^\n]*)\n' '''\n"
)
"""How installers write the interpreter of a script: in the first line, or in three if its path is long."""


def copy_scripts(source: Path, target: Path, *, made_in: Path, python: Path) -> None:
    """Copies the Python scripts of an environment, unless the target has one of that name.

    Files that may not be read, as some systems keep theirs in ``/usr/bin``, are left out.

    Args:
        source: Directory of the scripts.
        target: Takes the copies.
        made_in: Directory of the interpreter that the scripts name; scripts of other ones are left out.
        python: Interpreter that the copies name.
    """
    for path in source.iterdir() if source.is_dir() else ():
        if path.is_symlink() or not path.is_file() or (target / path.name).exists():
            continue
        try:
            file = path.open("rb")
        except PermissionError:
            continue
        with file:
            head = file.read(_HEAD_BYTES)
            match = _INTERPRETER.match(head)
            if match is None or not _names(match["line"] or match["command"], made_in):
                continue
            rest = head[match.end() :] + file.read()
        (target / path.name).write_bytes(_header(python) + rest)
        (target / path.name).chmod(0o755)


def _names(interpreter: bytes, directory: Path) -> bool:
    # Those of movable environments look for the interpreter beside themselves.
    return str(directory).encode() + b"/" in interpreter or b"$(dirname" in interpreter


def _header(python: Path) -> bytes:
    return f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n".encode()

"""Decides which entrypoints can run in a fork, and lists the modules that they import first."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SHELL_CHARACTERS = frozenset("$`|&;<>()*?[]{}~#!\\\n=")
"""What makes a command more than words; a text that has one is left to the shell."""
_TRIAL_CLASSES = "resolute_launch.harness"
_MAX_FILES = 200


class CannotForkError(Exception):
    """The entrypoint cannot run in a fork; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class PythonCommand:
    """``python [-u] SCRIPT ARGUMENTS`` or ``python [-u] -m MODULE ARGUMENTS``."""

    words: tuple[str, ...]
    """The whole command."""
    script: str
    """The script's path; empty for a module."""
    module: str
    """The module's name; empty for a script."""
    arguments: tuple[str, ...]
    """What follows."""


def python_command(argv: Sequence[str]) -> PythonCommand:
    """Reads the command of an entrypoint.

    Args:
        argv: What the entrypoint runs; ``sh -c TEXT`` for one that is text.

    Raises:
        CannotForkError: It is not a plain Python command.
    """
    words = list(argv)
    if len(words) == 3 and words[:2] == ["sh", "-c"]:
        if _SHELL_CHARACTERS.intersection(words[2]):
            raise CannotForkError("its entrypoint needs a shell")
        try:
            words = shlex.split(words[2])
        except ValueError as failure:
            raise CannotForkError(f"its entrypoint cannot be split into words: {failure}") from None
    name = os.path.basename(words[0]) if words else ""  # noqa: PTH119 - a word of a command
    if not name.startswith("python"):
        raise CannotForkError(f"its entrypoint starts {name or 'nothing'}, not Python")
    rest = words[1:]
    if rest[:1] == ["-u"]:
        rest = rest[1:]
    if rest[:1] == ["-m"] and len(rest) > 1:
        return PythonCommand(tuple(words), "", rest[1], tuple(rest[2:]))
    if not rest or rest[0].startswith("-"):
        raise CannotForkError("its entrypoint gives Python options, or no script")
    return PythonCommand(tuple(words), rest[0], "", tuple(rest[1:]))


def interpreter_of(command: PythonCommand, *, python: str, environment: Mapping[str, str], work: Path) -> str:
    """Finds the interpreter of a command: that of the platform, by the name that the command has for it.

    Args:
        command: The command.
        python: The interpreter that parked processes run.
        environment: The run's variables.
        work: The run's working directory.

    Raises:
        CannotForkError: It runs another one, or with a path of modules that depends on its directory.
    """
    word = command.words[0]
    executable = shutil.which(
        str(work / word) if "/" in word else word, path=environment.get("PATH", os.defpath)
    )
    same_folder = (
        executable is not None and Path(executable).parent.resolve() == Path(python).parent.resolve()
    )
    if executable is None or not same_folder or not Path(executable).samefile(python):
        raise CannotForkError(f"its entrypoint runs {executable or word}, and warm starts run {python}")
    entries = environment.get("PYTHONPATH", "")
    if entries and not all(entry.startswith("/") for entry in entries.split(os.pathsep)):
        raise CannotForkError("its PYTHONPATH has a relative path")
    if environment.get("PYTHONSAFEPATH"):
        raise CannotForkError("its environment has PYTHONSAFEPATH")
    return executable


def first_imports(command: PythonCommand, work: Path) -> list[str]:
    """Names the modules that a command imports at its start, as far as its source says so.

    Args:
        command: The command.
        work: The run's working directory; its own modules are read, and not named.
    """
    names: dict[str, None] = {}
    waiting: list[str] = []
    if command.script:
        waiting.append(command.script)
    elif _local_file(command.module, work):
        waiting.append(_local_file(command.module, work))
    if command.module == _TRIAL_CLASSES:
        names["resolute.pytorch"] = None
        modules = (word.partition(":")[0] for word in command.arguments)
        waiting += [path for module in modules if (path := _local_file(module, work))]
    seen: set[str] = set()
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        for name in _imports_of(work / path):
            local = _local_file(name, work)
            if local:
                waiting.append(local)
            else:
                names[name] = None
    return list(names)


def _local_file(module: str, work: Path) -> str:
    base = module.replace(".", "/")
    for candidate in (f"{base}.py", f"{base}/__init__.py"):
        if base and (work / candidate).is_file():
            return candidate
    return ""


_parsing = threading.Lock()
"""CPython 3.11 counts the depth of trees for all threads together, and fails where two parse at once."""


def syntax_tree(path: Path) -> ast.Module | None:
    """Parses a file; None if that cannot be done."""
    try:
        with _parsing:
            return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports_of(path: Path) -> Iterator[str]:
    tree = syntax_tree(path)
    if tree is not None:
        yield from _imports_in(tree.body)


def _imports_in(statements: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module
        elif isinstance(statement, ast.Try):
            yield from _imports_in(statement.body)

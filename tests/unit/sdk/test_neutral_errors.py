"""Exceptions of the SDK say what is wrong; what to type is added by the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import resolute

SDK = Path(resolute.__file__).parent
COMMANDS_OF = {"client/connection/contexts.py", "client/insight/timeline.py", "runtime/local_task.py"}
"""What only commands call: contexts of the command line, timelines, promotions and reproduced tasks."""
COMMAND = re.compile(r"`(?:resolute|det) [a-z]|(?<!\w)-m HOST")


def raised_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts in calls whose result is raised, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for below in ast.walk(node.exc):
                if isinstance(below, ast.Constant) and isinstance(below.value, str):
                    yield below.lineno, below.value


def test_no_exception_outside_of_the_command_line_names_a_command() -> None:
    found = [
        f"{path.relative_to(SDK)}:{line}: {text}"
        for path in sorted(SDK.rglob("*.py"))
        if path.relative_to(SDK).parts[0] not in {"cli", "api", "promotion"}
        and path.relative_to(SDK).as_posix() not in COMMANDS_OF
        for line, text in raised_texts(ast.parse(path.read_text()))
        if COMMAND.search(text)
    ]
    assert found == []

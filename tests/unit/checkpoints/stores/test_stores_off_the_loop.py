"""Stores are opened in threads: a file system that is away holds whoever follows a path on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import resolute_checkpoints

PACKAGE = Path(resolute_checkpoints.__file__).parent
BLOCKING = {"open", "admit", "realpath"}
"""Of a store factory, and of ``os.path``."""
_OTHER_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def _run_on_the_loop(function: ast.AsyncFunctionDef) -> Iterator[ast.Call]:
    """The calls that a coroutine makes itself, without those of functions that it hands to a thread."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _OTHER_FUNCTION):
            continue
        if isinstance(node, ast.Call):
            yield node
        waiting.extend(ast.iter_child_nodes(node))


def _blocks(call: ast.Call) -> bool:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in BLOCKING:
        return False
    return ast.unparse(function.value).endswith(("stores", "os.path"))


def blocking_calls(source: str) -> list[int]:
    """Lines in which a coroutine follows a path of a store."""
    coroutines = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.AsyncFunctionDef))
    return [call.lineno for one in coroutines for call in _run_on_the_loop(one) if _blocks(call)]


@pytest.mark.parametrize(
    "module", sorted(PACKAGE.rglob("*.py")), ids=lambda one: str(one.relative_to(PACKAGE))
)
def test_no_coroutine_opens_a_store(module: Path) -> None:
    assert blocking_calls(module.read_text()) == []


def test_a_coroutine_that_opens_a_store_is_found() -> None:
    source = "async def a(self):\n    s = self._stores.open(x)\n    await run(lambda: self._stores.open(x))\n"
    assert blocking_calls(source) == [2]

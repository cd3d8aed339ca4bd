"""Lists the environment variables that the code of a run changes, as far as its source shows it.

In a parked process an import may see another value than in a script that sets the variable first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from resolute_launch.warm.entrypoints import CannotForkError, syntax_tree

_MAX_FILES = 200
_UNKNOWN = frozenset({"putenv", "unsetenv", "load_dotenv"})
"""Calls that change variables which the source need not name."""
_READS = frozenset({"get", "copy", "keys", "values", "items"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def changed_variables(work: Path) -> list[str]:
    """Names the environment variables that the code changes in functions, or where it runs as the script.

    Args:
        work: The run's working directory.

    Raises:
        CannotForkError: The code changes variables while it is imported, or such as it does not name; or it
            cannot be read.
    """
    changed: set[str] = set()
    for number, path in enumerate(sorted(islice(work.rglob("*.py"), _MAX_FILES + 1))):
        file = path.relative_to(work)
        if number == _MAX_FILES:
            raise CannotForkError(f"its code has more than {_MAX_FILES} files")
        tree = syntax_tree(path)
        if tree is None:
            raise CannotForkError(f"{file} cannot be read")
        for node, in_function in _nodes(tree):
            names = _changes(node)
            if names and not in_function:
                raise CannotForkError(f"{file} changes environment variables before it imports")
            if "" in names:
                raise CannotForkError(f"{file} changes environment variables that it does not name")
            changed |= names
    return sorted(changed)


def _nodes(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Goes through a module, however deep: each node, and whether it is in a function.

    Of `environ`, what only reads it is left out.
    """
    waiting = [(tree, False)]
    while waiting:
        node, in_function = waiting.pop()
        if _only_reads(node):
            continue
        yield node, in_function
        if isinstance(node, (ast.Subscript, ast.Call)) and _changes(node):
            continue
        inside = in_function or isinstance(node, _FUNCTIONS) or _is_main(node)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


def _is_main(node: ast.AST) -> bool:
    """Whether this is `if __name__ == "__main__":`, which follows the imports as functions do."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and _last_name(node.test.left) == "__name__"
    )


def _only_reads(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _READS and _is_environ(node.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load) and _is_environ(node.value)
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], (ast.In, ast.NotIn)) and _is_environ(node.comparators[0])
    # {**os.environ, ...} and dict(os.environ) are copies.
    if isinstance(node, ast.Dict):
        return any(
            key is None and _is_environ(value) for key, value in zip(node.keys, node.values, strict=True)
        )
    return isinstance(node, ast.Call) and _last_name(node.func) == "dict" and any(map(_is_environ, node.args))


def _changes(node: ast.AST) -> set[str]:
    """Names what a node changes; an empty name stands for what is not named."""
    if isinstance(node, ast.Subscript) and _is_environ(node.value):
        return {_text(node.slice)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_environ(node.func.value):
        if node.func.attr in _READS:
            return set()
        named = node.func.attr in ("setdefault", "pop") and node.args
        return {_text(node.args[0]) if named else ""}
    return {""} if _is_environ(node) or _last_name(node) in _UNKNOWN else set()


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_environ(node: ast.AST) -> bool:
    return _last_name(node) == "environ"


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""

"""Examples in the reference of Python: which names have one, and running them."""

from __future__ import annotations

import doctest
import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from docs_site.python_api import public_names

CLIENT = "resolute.client"
WITHOUT_CLUSTER = (
    "resolute",
    "resolute.core",
    "resolute.core_v2",
    "resolute.searcher",
    "resolute.pytorch",
    "resolute.testing",
)
OTHER_LIBRARIES = (
    "resolute.keras",
    "resolute.keras.callbacks",
    "resolute.lightning",
    "resolute.transformers",
    "resolute.accelerate",
)


def offered(*modules: str) -> dict[str, object]:
    """Everything that modules offer, by its name."""
    return {
        f"{name}.{one}": getattr(import_module(name), one)
        for name in modules
        for one in public_names(import_module(name))
    }


def has_example(value: object) -> bool:
    """Whether the docstring of a class or a function has an example."""
    return ">>> " in (inspect.getdoc(value) or "")


def run_examples(
    *modules: str, between: Callable[[], None] = lambda: None, given: Mapping[str, Any] | None = None
) -> tuple[int, str]:
    """Runs the examples of modules, each by itself.

    Args:
        modules: Their names.
        between: Called after each example.
        given: What examples may name without having made it.

    Returns:
        How many ran, and what those that failed printed.
    """
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    said: list[str] = []
    # A class may be offered by several modules, and under several names.
    examples = {id(value): (name, value) for name, value in offered(*modules).items() if has_example(value)}
    for name, value in examples.values():
        test = parser.get_doctest(inspect.getdoc(value) or "", dict(given or {}), name, None, None)
        runner.run(test, out=said.append)
        between()
    return len(examples), "".join(said)


def class_of_example(value: object, name: str) -> Any:
    """The class that an example defines, for others that say whose it is.

    Args:
        value: What has the example.
        name: The class.
    """
    made: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""):
        if example.source.startswith(("import ", "from ", "class ")):
            exec(example.source, made)
    return made[name]

"""A page for each module that scripts and programs import; mkdocstrings writes what is public there."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

MODULES = (
    "resolute",
    "resolute.core",
    "resolute.core_v2",
    "resolute.pytorch",
    "resolute.keras",
    "resolute.keras.callbacks",
    "resolute.lightning",
    "resolute.transformers",
    "resolute.accelerate",
    "resolute.searcher",
    "resolute.client",
    "resolute.errors",
    "resolute.testing",
)


def pages() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each page, and of their list."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    for name in MODULES:
        module = import_module(name)
        entries = list(_entries(module))
        intro = (inspect.getdoc(module) or "").partition("\n\n")[0]
        yield f"{name}.md", "\n".join([f"# {name}", "", intro, "", *entries])
    rows = [f"- [{name}]({name}.md)" for name in MODULES]
    yield "README.md", "\n".join(["# Python", "", *rows, ""])


def _entries(module: ModuleType) -> Iterator[str]:
    methods = {one: _method(module, one) for one in public_names(module)}
    links = [f"[`{one}`][{method}]" for one, method in methods.items() if method]
    if links:
        yield f"Functions, which are methods of one object for the whole script: {', '.join(links)}.\n"
    for one, method in methods.items():
        if not method:
            yield f"::: {module.__name__}.{one}\n"


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: the classes and functions that it lists, or has without an underscore."""
    listed = getattr(module, "__all__", dir(module))
    found = [(name, getattr(module, name)) for name in sorted(listed) if not name.startswith("_")]
    return [
        name
        for name, value in found
        if (inspect.isclass(value) or inspect.isroutine(value)) and value.__module__.startswith("resolute")
    ]


def _method(module: ModuleType, name: str) -> str:
    """Where a function is documented that is a method of an object; empty for every other name."""
    value = getattr(module, name)
    return f"{module.__name__}.{value.__qualname__}" if inspect.ismethod(value) else ""

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
        entries = [_entry(module, public) for public in public_names(module)]
        intro = (inspect.getdoc(module) or "").partition("\n\n")[0]
        yield f"{name}.md", "\n".join([f"# {name}", "", intro, "", *entries])
    rows = [f"- [{name}]({name}.md)" for name in MODULES]
    yield "README.md", "\n".join(["# Python", "", *rows, ""])


def _entry(module: ModuleType, name: str) -> str:
    value = getattr(module, name)
    if not inspect.ismethod(value):
        return f"::: {module.__name__}.{name}\n"
    # A function that is a method of an object: its documentation is found by the class.
    heading = f"    options:\n      heading: {module.__name__}.{name}\n      toc_label: {name}\n"
    return f"::: {module.__name__}.{value.__qualname__}\n{heading}"


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: the classes and functions that it lists, or has without an underscore."""
    listed = getattr(module, "__all__", dir(module))
    members = [(name, getattr(module, name)) for name in sorted(listed) if not name.startswith("_")]
    return [
        name
        for name, value in members
        if (inspect.isclass(value) or inspect.isroutine(value)) and value.__module__.startswith("resolute")
    ]

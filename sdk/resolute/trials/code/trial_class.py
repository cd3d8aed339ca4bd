"""Imports a trial's class from the directory of a model definition."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any

PACKAGE = "model_definition"
"""Name under which the directory itself is a package, for modules that import their neighbours relatively."""


def import_class(spec: str, directory: Path) -> Any:
    """Imports the class that ``module:Class`` names.

    Args:
        spec: Module and class; the module may be given as its file. Without a module the ``__init__.py`` of
            the directory is meant, or its only file of Python where it has none.
        directory: Holds the code; it must be on ``sys.path``.

    Raises:
        ImportError: There is no such module.
        AttributeError: The module has no such class.
    """
    value: Any = _import_module(module_of(spec), directory)
    for part in spec.partition(":")[2].split("."):
        value = getattr(value, part)
    return value


def module_of(spec: str) -> str:
    """Returns the module name in ``module:Class`` or ``path/file.py:Class``; empty if there is none."""
    file = spec.partition(":")[0].removesuffix(".py")
    return ".".join(PurePosixPath(file).parts)


def _import_module(name: str, directory: Path) -> ModuleType:
    if name.partition(".")[0] in {"", PACKAGE}:
        _make_package(directory)
        return importlib.import_module(name or _only_module(directory))
    try:
        return importlib.import_module(name)
    except ImportError as failure:
        if "relative import" not in str(failure):
            raise
        _make_package(directory)
        return importlib.import_module(f"{PACKAGE}.{name}")


def _only_module(directory: Path) -> str:
    """The module of a directory that is one file, as old releases submitted it; else the directory itself."""
    files = list(directory.glob("*.py"))
    alone = len(files) == 1 and files[0].name != "__init__.py"
    return f"{PACKAGE}.{files[0].stem}" if alone else PACKAGE


def _make_package(directory: Path) -> None:
    """Makes the directory a package, so that its modules have a parent to import from."""
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    initial = directory / "__init__.py"
    if not initial.exists():
        alone = sorted(directory.glob("*.py"))
        initial = alone[0] if len(alone) == 1 else initial
    if initial.exists():
        spec = importlib.util.spec_from_file_location(
            PACKAGE, initial, submodule_search_locations=[str(directory)]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
        return
    package = ModuleType(PACKAGE, "A model definition.")
    package.__path__ = [str(directory)]
    sys.modules[PACKAGE] = package

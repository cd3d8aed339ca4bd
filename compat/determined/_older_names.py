"""Names of older releases: some are aliases, most raise an error that names the replacement."""

from __future__ import annotations

import importlib
import sys
import typing
from collections.abc import Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from determined._refused_names import LIBRARIES, REFUSED, WITHIN

_CLIENT = "determined.experimental.client"
_MODULES_OF_CLIENT = (
    "checkpoint",
    "determined",
    "experiment",
    "metrics",
    "model",
    "oauth2_scim_client",
    "project",
    "resource_pool",
    "trial",
    "user",
    "workspace",
)
_SAME = {
    "determined._core": "determined.core",
    "determined.cli.cli": "determined.cli",
    **{f"determined.common.experimental.{name}": _CLIENT for name in _MODULES_OF_CLIENT},
    **{f"determined.experimental.{name}": _CLIENT for name in ("checkpoint", "metrics", "model")},
    "determined.tensorboard.base": "determined.tensorboard",
    "determined.tensorboard.metric_writers.callback": "determined.tensorboard",
}
"""The module that each is now."""


def refuse(name: str) -> ImportError:
    """Returns the error of a name that is refused."""
    return ImportError(_sentence(name, _instead_of(name)), name=name)


def attribute(module: str, name: str) -> Any:
    """Returns what a module has by an older name.

    Args:
        module: Name of the module, whose ``__getattr__`` this is.
        name: What was asked for.

    Raises:
        AttributeError: It is not there. Pickling asks every module for names that it has not, and expects
            this error; ``from module import name`` then asks for a module of that name, which is refused.
    """
    if name == "__path__":  # with one, Python asks for modules in it
        return []
    full = f"{module}.{name}"
    if full in _SAME or (not name.startswith("_") and PathFinder.find_spec(full, _path(module)) is not None):
        return importlib.import_module(full)
    instead = "" if name.startswith("_") and full not in REFUSED else _instead_of(full)
    text = _sentence(full, instead) if instead else f"module {module!r} has no attribute {name!r}"
    raise AttributeError(text, name=name)


class Modules(MetaPathFinder, Loader):
    """The importer of the modules of ``determined``: existing ones, aliases, and refused ones."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the spec of a module; None for modules of others, and for what no release had."""
        if not fullname.startswith("determined."):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None:
            if isinstance(spec.loader, SourceFileLoader):
                spec.loader = _SourceLoader(spec.loader.name, spec.loader.path)
            return spec
        return ModuleSpec(fullname, self) if fullname in _SAME or _instead_of(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        """Puts the module that it is now in its place, or refuses it."""
        if module.__name__ not in _SAME:
            raise refuse(module.__name__)
        sys.modules[module.__name__] = importlib.import_module(_SAME[module.__name__])

    def get_code(self, fullname: str) -> CodeType:
        """Refuses to run one as a program: ``python -m`` asks for its code."""
        if fullname in _SAME:
            raise ImportError(f"{fullname} is not a program", name=fullname)
        raise refuse(fullname)


class _SourceLoader(SourceFileLoader):
    """Loads an existing module, and installs a ``__getattr__`` for the names that it lacks."""

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__getattr__"] = partial(attribute, module.__name__)
        super().exec_module(module)


def _path(module: str) -> list[str]:
    return list(getattr(sys.modules.get(module), "__path__", ()))


def _sentence(name: str, instead: str) -> str:
    return f"{name} is not available: {instead}"


def _instead_of(name: str) -> str:
    """What to use instead of a name; empty if no release had it."""
    package, _, last = name.rpartition(".")
    if name in REFUSED:
        return REFUSED[name]
    if last.startswith("_"):
        return "" if last.endswith("__") else f"it was private; {package} has the public names"
    if last in typing.__all__:
        return f"import {last} from typing"
    if last in sys.stdlib_module_names or last in LIBRARIES:
        return f"import it as others do: {LIBRARIES.get(last, f'import {last}')}"
    while package and package not in WITHIN:
        package = package.rpartition(".")[0]
    return WITHIN.get(package, "")


sys.meta_path.insert(0, Modules())

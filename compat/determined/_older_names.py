"""Names of older releases: some are aliases, most raise an error that says what to use instead."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

from determined._refused_names import REFUSED, WITHIN

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
    return ImportError(f"{name} is not available: {_instead_of_module(name)}", name=name)


def attribute(module: str, name: str) -> Any:
    """Returns what a module has by an older name.

    Args:
        module: Name of the module, which calls this in its ``__getattr__``.
        name: What was asked for.

    Raises:
        ImportError: It is refused.
        AttributeError: No release had it; or it may be anything of a package that is refused as a whole.
            Pickling asks every module for names that it has not, and expects this error.
    """
    full = f"{module}.{name}"
    if full in _SAME:
        return importlib.import_module(full)
    instead = _instead_of(full)
    if not instead:
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
    path = getattr(sys.modules[module], "__path__", None)
    if full in REFUSED or path is None:
        raise refuse(full)
    if importlib.machinery.PathFinder.find_spec(full, path) is not None:
        return importlib.import_module(full)
    raise AttributeError(str(refuse(full)), name=name)


class OlderModules(MetaPathFinder, Loader):
    """Finds these modules, after all other finders: it hides no module that exists."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns a spec whose loader is this object; None for any other module."""
        return ModuleSpec(fullname, self) if fullname in _SAME or _instead_of_module(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        """Puts the module that it is now in its place, or refuses it."""
        if module.__name__ not in _SAME:
            raise refuse(module.__name__)
        sys.modules[module.__name__] = importlib.import_module(_SAME[module.__name__])

    def get_code(self, fullname: str) -> CodeType:
        """Refuses to run one as a program: ``python -m`` asks for its code."""
        if fullname in _SAME:
            raise ImportError(f"{fullname} is no program", name=fullname)
        raise refuse(fullname)


def _instead_of_module(name: str) -> str:
    """What to use instead of a module, which may have been private; empty if no release had it.

    Attributes are not asked for so: pickling looks for private ones everywhere.
    """
    package, _, last = name.rpartition(".")
    private = package.partition(".")[0] == "determined" and last.startswith("_") and not last.endswith("__")
    return _instead_of(name) or (f"it was private; import the name from {package}" if private else "")


def _instead_of(name: str) -> str:
    """What to use instead of a name; empty if no release had it."""
    package, _, last = name.rpartition(".")
    if name in REFUSED or last.startswith("_"):
        return REFUSED.get(name, "")
    while package and package not in WITHIN:
        package = package.rpartition(".")[0]
    return WITHIN.get(package, "")

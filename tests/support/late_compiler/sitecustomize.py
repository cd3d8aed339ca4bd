"""Defers the import of torch's compiler, which takes as long as that of torch, until something compiles.

Python runs this module at the start of every process that tests start: its folder is on their PYTHONPATH.
Every optimizer of torch imports `torch._dynamo`, only to mark functions that the compiler must leave alone.
Here it gets a module that has these two calls, and that becomes the real one when anything else is used.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_NAME = "torch._dynamo"


class LateCompiler(ModuleType):
    """Stands for `torch._dynamo` while nothing compiles."""

    def disable(self, function: Any = None, *_: object, **options: Any) -> Any:
        """Marks a function that is not to be compiled; without one, the real module answers."""
        return self.__getattr__("disable")(**options) if function is None else function

    @staticmethod
    def graph_break() -> None:
        """Separates what is compiled before from what is compiled after."""

    def __getattr__(self, name: str) -> Any:
        """Replaces this module by the real one."""
        # The import system reads `__path__` while it makes this module, and before it imports a submodule.
        if name.startswith("__") and not (name == "__path__" and sys.modules.get(_NAME) is self):
            raise AttributeError(name)
        if sys.modules.get(_NAME) is self:
            sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
            del sys.modules[_NAME]
        return getattr(importlib.import_module(_NAME), name)


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return LateCompiler(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != _NAME or PathFinder.find_spec(fullname, path) is None:
            return None
        return ModuleSpec(fullname, _Loader())


sys.meta_path.insert(0, _Finder())

"""The objects that an object refers to: attributes, items of containers, and names in functions."""

from __future__ import annotations

import contextlib
import functools
import logging
import random
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

GENERATORS = (
    random.Random,
    np.random.Generator,
    np.random.RandomState,
    np.random.BitGenerator,
    torch.Generator,
)
_DEPTH = 8
"""How deep is looked: a subset of several data sets, each with transforms, one of which holds something."""
_MOST_OBJECTS = 1000
"""Most objects that are looked into, and most items of a container."""
_PLAIN = (str, bytes, int, float, type(None), np.ndarray, torch.Tensor, types.ModuleType, logging.Logger)
"""What holds nothing that is looked for."""
_BOUND = (types.MethodType, types.BuiltinMethodType, staticmethod, classmethod, property)
_WRAPPERS = ("torch.nn.parallel", "torch._dynamo")
"""Where torch has the modules that it puts around others."""
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_ITSELF = Path(__file__).parents[2]
"""The platform's own package, which lies with the script's modules where it was installed for development."""


def walk(
    owner: object,
    *,
    without: Iterable[object] = (),
    enters: Callable[[object], bool] = lambda _: True,
) -> Iterator[tuple[str, Any]]:
    """Yields the objects reachable from an object with their paths, the nearest first.

    Args:
        owner: The object.
        without: Objects that are not looked into.
        enters: Whether an object is looked into.
    """
    seen = {id(held): held for held in without}  # kept, so that no identity is used again
    level: list[tuple[str, object]] = [("", owner)]
    for _ in range(_DEPTH):
        inner: list[tuple[str, object]] = []
        for path, holder in level:
            if id(holder) in seen or len(seen) > _MOST_OBJECTS:
                continue
            seen[id(holder)] = holder
            for name, value in _content(holder):
                yield f"{path}.{name}", value
                if not isinstance(value, _PLAIN) and enters(value):
                    inner.append((f"{path}.{name}", value))
        level = inner


def state_of_functions(
    name: str, owner: object, *, without: Iterable[object] = ()
) -> Iterator[tuple[str, object]]:
    """Yields the state that functions reachable from an object keep between calls, with names.

    Args:
        name: The object's.
        owner: The object.
        without: Objects that are not looked into.
    """
    for path, one in walk(owner, without=without):
        if isinstance(one, types.FunctionType):
            if is_of_script(one.__module__ or ""):
                yield from _remembered(one)
        elif isinstance(one, types.MethodType):
            if is_script_object(one.__self__):
                yield f"{name}{path}", one.__self__
        elif isinstance(one, functools.partial):
            yield f"{name}{path}", (one.args, one.keywords)


def attributes(holder: object) -> Iterator[tuple[str, Any]]:
    """Yields the attributes of an object, and those of its class that a script has written.

    Of a module they are its own and those of its parts, without parameters, buffers and what torch keeps.
    """
    if isinstance(holder, nn.Module):
        for path, part in holder.named_modules():
            if type(part).__module__.startswith(_WRAPPERS):
                continue
            prefix = f"{path}." if path else ""
            yield from ((f"{prefix}{name}", value) for name, value in _own_attributes(part))
        return
    yield from _own_attributes(holder)


def is_function_or_class(value: object) -> bool:
    """Returns whether a value is a class, a function or a method."""
    kinds = (type, types.FunctionType, types.MethodType, staticmethod, classmethod, property)
    return isinstance(value, kinds)


def is_of_script(module: str) -> bool:
    """Whether a module is the script's: neither Python's, nor of an installed package, nor the platform's."""
    return module == "__main__" or _lies_with_the_script(getattr(sys.modules.get(module), "__file__", None))


def is_script_object(value: object) -> bool:
    """Whether an object is of a class that the script has written, or that derives from one."""
    return any(is_of_script(kind.__module__) for kind in type(value).__mro__)


def _own_attributes(holder: object) -> Iterator[tuple[str, Any]]:
    known: Any = _OF_EVERY_MODULE if isinstance(holder, nn.Module) else ()
    # Copied: a thread of the script may set others meanwhile.
    own = list(getattr(holder, "__dict__", {}).items())
    yield from ((name, value) for name, value in own if name not in known)
    for kind in type(holder).__mro__:
        if not is_of_script(kind.__module__):
            continue
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            with contextlib.suppress(AttributeError):  # it was not set
                yield name, getattr(holder, name)
        for name, value in vars(kind).items():
            hidden = name in slots or name in getattr(holder, "__dict__", ())
            if not hidden and (not name.startswith("__") or isinstance(value, types.FunctionType)):
                yield name, value


def _content(holder: object) -> Iterator[tuple[str, object]]:
    """Yields the objects that an object contains or names."""
    if isinstance(holder, (list, tuple, deque, dict)):
        if len(holder) < _MOST_OBJECTS:
            items = holder.items() if isinstance(holder, dict) else enumerate(holder)
            yield from ((str(name), value) for name, value in items)
    elif isinstance(holder, functools.partial):
        yield from (("func", holder.func), ("args", holder.args), *holder.keywords.items())
    elif isinstance(holder, types.FunctionType):
        yield from _named_by(holder)
    elif isinstance(holder, type):
        yield from vars(holder).items() if is_of_script(holder.__module__) else ()
    elif isinstance(holder, _BOUND):
        inner = (getattr(holder, name, None) for name in ("__self__", "__func__", "fget"))
        yield from (("__self__", held) for held in inner if held is not None)
    else:
        yield from attributes(holder)


def _remembered(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """Yields what a function has of functions around it, its attributes, and what it names of its module."""
    name = function.__qualname__
    for inner, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # it is empty until the function around has set it
            yield f"{inner} in {name}", cell.cell_contents
    yield from ((f"{name}.{inner}", value) for inner, value in vars(function).items())
    for inner in function.__code__.co_names:
        if inner in function.__globals__:
            yield f"{function.__module__}.{inner}", function.__globals__[inner]


def _named_by(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """Yields what a function has of the functions around it, and what it names of its module's own."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # it is empty until the function around has set it
            yield name, cell.cell_contents
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        named = isinstance(value, (type, types.FunctionType))
        of_script = is_of_script(value.__module__ or "") if named else is_script_object(value)
        if of_script or isinstance(value, GENERATORS):
            yield name, value


@functools.lru_cache(maxsize=4096)
def _lies_with_the_script(file: str | None) -> bool:
    if file is None:
        return False
    path = Path(file).absolute()
    library = Path(sysconfig.get_path("stdlib")).absolute()
    installed = {"site-packages", "dist-packages"}.intersection(path.parts)
    return not (installed or path.is_relative_to(library) or path.is_relative_to(_ITSELF))

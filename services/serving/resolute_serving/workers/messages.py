"""The messages between a service and its worker processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Task:
    """A task for a process.

    Attributes:
        work: Function of a module.
        arguments: Arguments of the function.
        cpu_seconds: Most processor time; None for no limit.
        growth_bytes: Most memory by which it may enlarge a process that goes on after it; None for no limit.
    """

    work: Callable[..., Any]
    arguments: tuple[Any, ...]
    cpu_seconds: int | None
    growth_bytes: int | None


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a task.

    Attributes:
        value: Return value of the function.
        error: Error that the function raised; None if it returned.
        out_of_memory: Whether the process was out of memory.
        last: Whether the process ends after it, which gives back the memory that the task needed.
    """

    value: Any = None
    error: Exception | None = None
    out_of_memory: bool = False
    last: bool = False

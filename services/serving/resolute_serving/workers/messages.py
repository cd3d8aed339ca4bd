"""What a service and its worker processes send each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Task:
    """What a process is to do.

    Attributes:
        work: A function of a module.
        arguments: Its arguments.
        cpu_seconds: Most processor time; None for no limit.
    """

    work: Callable[..., Any]
    arguments: tuple[Any, ...]
    cpu_seconds: int | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a task.

    Attributes:
        value: What the function returned.
        error: What it raised; None if it returned.
        out_of_memory: Whether the process had no more memory.
    """

    value: Any = None
    error: Exception | None = None
    out_of_memory: bool = False

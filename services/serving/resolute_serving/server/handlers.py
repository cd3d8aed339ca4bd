"""The RPCs of one service, handled by several objects."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def combine_handlers(servicer: type[Any], *parts: object) -> Any:
    """Puts the handlers of all RPCs of a service together.

    Args:
        servicer: The class that gRPC generates for the service.
        parts: What has the handlers, as methods with the names of the RPCs.

    Returns:
        What gRPC takes as an instance of it.

    Raises:
        ValueError: An RPC has no handler, or several have it.
    """
    handlers = {}
    for name in (name for name in vars(servicer) if not name.startswith("_")):
        methods = [getattr(part, name) for part in parts if hasattr(part, name)]
        if len(methods) != 1:
            raise ValueError(f"{servicer.__name__}.{name} has {len(methods)} handlers; it must have one")
        handlers[name] = methods[0]
    return SimpleNamespace(**handlers)

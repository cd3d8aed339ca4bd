"""Every call of the contract, by its descriptor."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from google.protobuf.descriptor import MethodDescriptor

import resolute.api


def methods() -> Iterator[MethodDescriptor]:
    """Yields every RPC of every service."""
    for module in pkgutil.walk_packages(resolute.api.__path__, "resolute.api."):
        if module.name.endswith("_pb2"):
            for service in importlib.import_module(module.name).DESCRIPTOR.services_by_name.values():
                yield from service.methods


def path(method: MethodDescriptor) -> str:
    """The full name of an RPC as gRPC sends it: ``/package.Service/Method``."""
    return f"/{method.containing_service.full_name}/{method.name}"

"""Every call of the contract, from the generated code."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from google.protobuf.descriptor import MethodDescriptor

import resolute.api


def methods() -> Iterator[MethodDescriptor]:
    """Yields every RPC of every service, in the order of their modules' names."""
    names = (module.name for module in pkgutil.walk_packages(resolute.api.__path__, "resolute.api."))
    for module in sorted(names):
        if module.endswith("_service_pb2"):
            for service in importlib.import_module(module).DESCRIPTOR.services_by_name.values():
                yield from service.methods


def path_of(method: MethodDescriptor) -> str:
    """The full name of a call as gRPC sends it, which is also its path: ``/package.Service/Method``."""
    return f"/{method.containing_service.full_name}/{method.name}"

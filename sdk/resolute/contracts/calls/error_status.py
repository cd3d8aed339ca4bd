"""Reads the ``google.rpc.Status`` of a failed call, for clients and services."""

from __future__ import annotations

from typing import Any

from google.rpc import error_details_pb2

from resolute import errors


def from_status(status: Any, *, status_name: str) -> errors.ResoluteError:
    """Turns a ``google.rpc.Status`` into a typed error, with its violations and metadata.

    Args:
        status: The status in the trailing metadata of the call.
        status_name: Name of the gRPC status code, such as ``NOT_FOUND``.
    """
    info = error_details_pb2.ErrorInfo()
    bad = error_details_pb2.BadRequest()
    for detail in status.details:
        for message in (info, bad):
            if detail.Is(message.DESCRIPTOR):
                detail.Unpack(message)
    default = errors.BY_STATUS.get(status_name, errors.InternalError)
    kind = errors.BY_REASON.get(info.reason, default) if info.domain == errors.DOMAIN else default
    metadata = dict(info.metadata)
    return kind(
        status.message,
        resource=metadata.pop("resource", ""),
        violations=[errors.Violation(v.field, v.description) for v in bad.field_violations],
        metadata=metadata,
    )

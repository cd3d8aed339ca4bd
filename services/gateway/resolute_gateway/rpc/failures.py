"""Converts errors of services to errors of the Connect protocol, with all their details."""

from __future__ import annotations

import grpc
from connectrpc.code import Code
from connectrpc.errors import ConnectError, ErrorDetail
from google.protobuf import any_pb2, json_format
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status
from protobuf import Message
from protobuf.wkt import Any, Struct

from resolute.errors import ResoluteError
from resolute_serving.server.calls import to_status

assert error_details_pb2.ErrorInfo  # its import is what makes the messages known by name
_CODES = {
    code.value[0]: Code(code.value[1].replace(" ", "_").replace("cancelled", "canceled"))
    for code in grpc.StatusCode
    if code is not grpc.StatusCode.OK
}


class _ReadableDetail(ErrorDetail):
    """An error detail that JSON also contains in readable form, as ``debug`` of the protocol."""

    def __init__(self, detail: any_pb2.Any) -> None:
        super().__init__(Any(type_url=detail.type_url, value=detail.value))

    def value(self, *_: object) -> Message | None:
        """The detail as a JSON object; None if its type is not known here."""
        try:
            kind = Default().FindMessageTypeByName(self.type_name)
            message = GetMessageClass(kind).FromString(self.message_bytes)
        except (KeyError, DecodeError):
            return None
        return Struct.from_json(json_format.MessageToJson(message))


def from_call(failure: grpc.aio.AioRpcError) -> ConnectError:
    """The error of a call that a service failed, or that did not reach it."""
    status = rpc_status.from_call(failure)
    if status is None:
        return ConnectError(_CODES[failure.code().value[0]], failure.details() or "")
    return _from_status(status)


def from_error(error: ResoluteError) -> ConnectError:
    """An error of the gateway itself, in the form that errors of services have."""
    return _from_status(to_status(error))


def _from_status(status: status_pb2.Status) -> ConnectError:
    details = [_ReadableDetail(detail) for detail in status.details]
    return ConnectError(_CODES.get(status.code, Code.UNKNOWN), status.message, details)

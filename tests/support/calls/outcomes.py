"""How a call ended, in a form in which calls that were made in different ways can be compared."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from google.rpc import status_pb2
from grpc_status import rpc_status

Leaves = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """How a call ended: the leaves of its answer or of its error, by path."""

    code: str
    leaves: Leaves

    def agrees(self, *others: Outcome) -> bool:
        """Whether it is as either of two others that were made before and after it.

        What differs between those, such as times, says nothing.
        """
        before, after = others
        moving = {
            name
            for name in before.leaves.keys() | after.leaves.keys()
            if before.leaves.get(name) != after.leaves.get(name)
        }
        return any(
            self.code == other.code and not (_differing(self.leaves, other.leaves) - moving)
            for other in others
        )


def _differing(one: Leaves, other: Leaves) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def _without_figures(value: Any) -> Any:
    """Sentences tell what was measured just then, such as free space, speeds and times to wait."""
    return re.sub(r"[\d.]*\d", "0", value) if isinstance(value, str) and " " in value else value


def leaves_of(content: Any, name: str = "") -> dict[str, Any]:
    """The values of nested objects and lists, by path."""
    if isinstance(content, dict):
        return {k: v for key, value in content.items() for k, v in leaves_of(value, f"{name}.{key}").items()}
    if isinstance(content, list):
        return {k: v for i, value in enumerate(content) for k, v in leaves_of(value, f"{name}[{i}]").items()}
    return {name: content}


def answered(method: MethodDescriptor, data: bytes) -> Outcome:
    message = GetMessageClass(method.output_type).FromString(data)
    leaves = leaves_of(json_format.MessageToDict(message))
    return Outcome("ok", {name: _without_figures(value) for name, value in leaves.items()})


def ended() -> Outcome:
    """A stream that ended before it had an answer."""
    return Outcome("ok", {"ended": True})


def failed(code: str, message: str, details: list[tuple[str, bytes]]) -> Outcome:
    return Outcome(
        code,
        {
            "message": _without_figures(message),
            "details": [kind for kind, _ in details],
            **{f"detail {number}": value for number, (_, value) in enumerate(details)},
        },
    )


def failed_by_grpc(failure: Any) -> Outcome:
    """What grpcio raised."""
    status = rpc_status.from_call(failure) or status_pb2.Status(message=failure.details())
    details = [(one.type_url.rpartition("/")[2], one.value) for one in status.details]
    return failed(failure.code().name.lower().replace("cancelled", "canceled"), status.message, details)


def failed_by_http(content: Mapping[str, Any]) -> Outcome:
    """An error of the Connect protocol."""
    details = [(one["type"], base64.b64decode(one["value"] + "==")) for one in content.get("details", ())]
    return failed(content["code"], content.get("message", ""), details)

"""Converts Python values to and from the contract's ``Value``, which distinguishes integers from floats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resolute.api.common.v1 import value_pb2
from resolute.errors import InvalidArgumentError

_INT64 = range(-(2**63), 2**63)
MAX_DEPTH = 30
"""Deepest nesting that is taken: protobuf reads at most 100 levels of messages, and a mapping takes three."""


def to_value(value: Any, *, path: str = "", depth: int = 0) -> value_pb2.Value:
    """Converts JSON-like Python data: None, bool, int, float, str, lists, tuples and mappings with text keys.

    Raises:
        InvalidArgumentError: Something else is in it, an integer needs more than 64 bits, or it nests deeper
            than ``MAX_DEPTH``; the message holds the path.
    """
    if depth > MAX_DEPTH:
        raise InvalidArgumentError(f"{path or 'value'} nests deeper than {MAX_DEPTH} levels")
    if value is None:
        return value_pb2.Value(null_value=value_pb2.NULL_VALUE_UNSPECIFIED)
    if isinstance(value, bool):
        return value_pb2.Value(bool_value=value)
    if isinstance(value, int):
        if value not in _INT64:
            raise InvalidArgumentError(f"{path or 'value'} is {value}, which needs more than 64 bits")
        return value_pb2.Value(int_value=value)
    if isinstance(value, float):
        return value_pb2.Value(double_value=value)
    if isinstance(value, str):
        return value_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        return value_pb2.Value(map_value=_to_map(value, path=path, depth=depth))
    if isinstance(value, (list, tuple)):
        items = [to_value(item, path=f"{path}[{i}]", depth=depth + 1) for i, item in enumerate(value)]
        return value_pb2.Value(list_value=value_pb2.ListValue(values=items))
    raise InvalidArgumentError(
        f"{path or 'value'} is a {type(value).__name__}; "
        "only None, bool, int, float, str, lists and dicts can be sent"
    )


def _to_map(value: Mapping[Any, Any], *, path: str, depth: int) -> value_pb2.MapValue:
    result = value_pb2.MapValue()
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidArgumentError(f"{path or 'value'} has the key {key!r}; keys must be text")
        result.fields[key].CopyFrom(to_value(item, path=f"{path}.{key}" if path else key, depth=depth + 1))
    return result


def from_value(value: value_pb2.Value) -> Any:
    """Converts back to plain Python data.

    Raises:
        InvalidArgumentError: The message has no kind set.
    """
    kind = value.WhichOneof("kind")
    if kind is None:
        raise InvalidArgumentError("a value without a kind was sent")
    if kind == "null_value":
        return None
    if kind == "list_value":
        return [from_value(item) for item in value.list_value.values]
    if kind == "map_value":
        return {key: from_value(item) for key, item in sorted(value.map_value.fields.items())}
    return getattr(value, kind)


def to_mapping(value: value_pb2.Value) -> dict[str, Any]:
    """Converts a value that must be a mapping; one without a kind counts as empty.

    Raises:
        InvalidArgumentError: It is another kind.
    """
    if value.WhichOneof("kind") is None:
        return {}
    result = from_value(value)
    if not isinstance(result, dict):
        raise InvalidArgumentError(f"a mapping was expected, a {type(result).__name__} was sent")
    return result

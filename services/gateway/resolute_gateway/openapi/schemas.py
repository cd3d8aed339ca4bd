"""Messages and enumerations as JSON schemas, by Protobuf's mapping to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

Schema = dict[str, Any]

_INTEGER_TEXT = {"type": "string", "pattern": "^-?[0-9]+$"}
_LONG: Schema = {"oneOf": [_INTEGER_TEXT, {"type": "integer"}], "format": "int64"}
_UNSIGNED_LONG: Schema = {
    "oneOf": [{"type": "string", "pattern": "^[0-9]+$"}, {"type": "integer", "minimum": 0}],
    "format": "uint64",
}
_NUMBER: Schema = {"oneOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_INT: Schema = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
_UNSIGNED: Schema = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}
_SCALARS: Mapping[int, Schema] = {
    FieldDescriptor.TYPE_DOUBLE: _NUMBER,
    FieldDescriptor.TYPE_FLOAT: _NUMBER,
    FieldDescriptor.TYPE_INT64: _LONG,
    FieldDescriptor.TYPE_SINT64: _LONG,
    FieldDescriptor.TYPE_SFIXED64: _LONG,
    FieldDescriptor.TYPE_UINT64: _UNSIGNED_LONG,
    FieldDescriptor.TYPE_FIXED64: _UNSIGNED_LONG,
    FieldDescriptor.TYPE_INT32: _INT,
    FieldDescriptor.TYPE_SINT32: _INT,
    FieldDescriptor.TYPE_SFIXED32: _INT,
    FieldDescriptor.TYPE_UINT32: _UNSIGNED,
    FieldDescriptor.TYPE_FIXED32: _UNSIGNED,
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
}
_WELL_KNOWN: Mapping[str, Schema] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?s$"},
    "google.protobuf.FieldMask": {"type": "string"},
    "google.protobuf.Struct": {"type": "object"},
    "google.protobuf.ListValue": {"type": "array"},
    "google.protobuf.Value": {},
    "google.protobuf.Any": {
        "type": "object",
        "properties": {"@type": {"type": "string"}},
        "required": ["@type"],
    },
}


class Schemas:
    """Collects the schemas of messages, and of the messages in them."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        """Schemas by full name."""

    def reference(self, kind: Descriptor | EnumDescriptor) -> Schema:
        """A reference to the schema of a message or an enumeration."""
        if isinstance(kind, Descriptor) and kind.full_name in _WELL_KNOWN:
            return _WELL_KNOWN[kind.full_name]
        if kind.full_name not in self.components:
            self.components[kind.full_name] = {}  # messages may hold themselves
            made = self._message(kind) if isinstance(kind, Descriptor) else _enumeration(kind)
            self.components[kind.full_name] = made
        return {"$ref": f"#/components/schemas/{kind.full_name}"}

    def _message(self, kind: Descriptor) -> Schema:
        properties = {field.json_name: self._field(field) for field in kind.fields}
        return {"type": "object", "properties": properties, "additionalProperties": False}

    def _field(self, field: FieldDescriptor) -> Schema:
        message = field.message_type
        if message is not None and message.GetOptions().map_entry:
            return {"type": "object", "additionalProperties": self._single(message.fields_by_name["value"])}
        one = self._single(field)
        return {"type": "array", "items": one} if field.is_repeated else one

    def _single(self, field: FieldDescriptor) -> Schema:
        if field.message_type is not None:
            return self.reference(field.message_type)
        if field.enum_type is not None:
            return self.reference(field.enum_type)
        return _SCALARS[field.type]


def _enumeration(kind: EnumDescriptor) -> Schema:
    return {"type": "string", "enum": [value.name for value in kind.values]}

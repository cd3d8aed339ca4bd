"""Reads a config document: YAML text or plain data in, JSON-able data out.

The dialect is the core schema of YAML 1.2: ``1e-3`` is a number; ``on``, ``no``, ``12:30`` and dates are
text. (PyYAML reads YAML 1.1, which differs in each of these.) Merge keys (``<<``) work too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from resolute.contracts.documents.faults import ConfigError, Fault, describe, dotted
from resolute.contracts.documents.section import INT64

MAX_DEPTH = 64
"""Deepest nesting of maps and lists that is accepted."""

MAX_NODES = 100_000
"""Most values that a document may hold once its aliases are written out."""

MAX_DIGITS = 100
"""Most characters of an integer that are read at all."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the implicit types of YAML 1.2, which refuses duplicate keys."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # PyYAML's own protocol

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: dict[tuple[str, str], yaml.Node] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            earlier = seen.setdefault((key.tag, key.value), key)
            if earlier is not key:
                raise yaml.composer.ComposerError(
                    None,
                    None,
                    f"the key {key.value!r} is given twice (first in line {earlier.start_mark.line + 1})",
                    key.start_mark,
                )
        return node


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    if len(text) > MAX_DIGITS:
        message = f"found an integer of more than {MAX_DIGITS} digits"
        raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
    return int(text, 0) if text.lstrip("+-")[:2] in {"0x", "0o"} else int(text)


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node)).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_IMPLICIT = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
)
for _tag, _pattern, _first in _IMPLICIT:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document.

    Attributes:
        content: A deep copy of dicts with text keys, lists, text, finite numbers, booleans and None.
        faults: Values that cannot be represented in this form; in ``content`` they are None.
    """

    content: dict[str, Any]
    faults: tuple[Fault, ...] = ()


def read_document(source: str | bytes | Mapping[str, Any], *, name: str = "") -> Document:
    """Read one config document; an empty one is an empty map.

    Args:
        source: YAML (or JSON, which is YAML) as text or UTF-8 bytes, or data that was read already.
        name: Name of the layer, for messages; empty for the user's own config.

    Raises:
        ConfigError: The text is not UTF-8 or not YAML (with line and column), or is not a map.
    """
    data = source if isinstance(source, Mapping) else _load(_decode(source, name), name)
    if data is None:
        return Document({})
    if not isinstance(data, Mapping):
        raise ConfigError(
            [Fault("", f"found {describe(data)}", "a map of fields at the top level", source=name)]
        )
    faults: list[Fault] = []
    return Document(_plain_map(data, (), faults, name), tuple(faults))


def _decode(source: str | bytes, name: str) -> str:
    if isinstance(source, str):
        return source
    try:
        return source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = source[: error.start].decode("utf-8", "replace")
        raise _unreadable(before, "a byte that is not UTF-8", "text in UTF-8", name) from None


def _load(text: str, name: str) -> Any:
    if text.startswith("{"):
        # JSON is YAML but for its surrogate pairs and some characters, and is read much faster.
        try:
            return json.loads(text, object_pairs_hook=_distinct_keys)
        except (ValueError, RecursionError):
            pass
    return _load_yaml(text, name)


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a key is given twice")
    return mapping


def _load_yaml(text: str, name: str) -> Any:
    try:
        # PyYAML checks for characters that YAML forbids as soon as the loader is made.
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_size(node, name)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, name) from None
    except yaml.reader.ReaderError as error:
        found = (
            f"the character {chr(error.character)!r}"
            if isinstance(error.character, int)
            else "a bad character"
        )
        raise _unreadable(text[: error.position], found, "printable text", name) from None
    except RecursionError:
        raise ConfigError([_too_deep((), name)]) from None


def _syntax_error(error: yaml.MarkedYAMLError, name: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    problem = f"not valid YAML: {error.problem or 'unreadable'}"
    started = error.context_mark
    hint = ""
    if error.context:
        hint = error.context + (f" that starts in line {started.line + 1}" if started else "")
    return ConfigError([Fault(where, problem, hint=hint, source=name)])


def _unreadable(before: str, found: str, expected: str, name: str) -> ConfigError:
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return ConfigError([Fault(f"line {line}, column {column}", f"found {found}", expected, source=name)])


def _check_size(root: yaml.Node, name: str) -> None:
    """Refuse aliases that are circular or multiply to an absurd size, before anything is built of them."""
    sizes: dict[int, int | None] = {}

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node), -1)
        if known is None:
            mark = node.start_mark
            where = f"line {mark.line + 1}, column {mark.column + 1}"
            raise ConfigError([Fault(where, "an alias refers to what contains it", source=name)])
        if known >= 0:
            return known
        sizes[id(node)] = None
        total = 1
        if isinstance(node, yaml.MappingNode):
            total += sum(size(key) + size(value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            total += sum(size(item) for item in node.value)
        sizes[id(node)] = total
        return total

    if size(root) > MAX_NODES:
        raise ConfigError([Fault("", f"more than {MAX_NODES} values once aliases are expanded", source=name)])


def _plain(value: Any, at: tuple[str | int, ...], faults: list[Fault], name: str) -> Any:
    """Copy a value into plain JSON types; note a fault for each part that has no such form."""
    if len(at) > MAX_DEPTH:
        faults.append(_too_deep(at, name))
        return None
    if isinstance(value, Mapping):
        return _plain_map(value, at, faults, name)
    if isinstance(value, (list, tuple)):
        return [_plain(item, (*at, index), faults, name) for index, item in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    expected = ""
    if isinstance(value, int):
        expected = "" if INT64[0] <= value <= INT64[1] else "an integer of 64 bits"
    elif isinstance(value, float):
        expected = "" if math.isfinite(value) else "a finite number"
    elif isinstance(value, str):
        expected = "" if _is_text(value) else "text without NUL characters and lone surrogates"
    else:
        expected = "text, a number, true, false, null, a list or a map"
    if expected:
        faults.append(Fault(dotted(at), f"found {describe(value)}", expected, source=name))
        return None
    return value


def _plain_map(
    value: Mapping[Any, Any], at: tuple[str | int, ...], faults: list[Fault], name: str
) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(key, str) and _is_text(key):
            plain[key] = _plain(item, (*at, key), faults, name)
        else:
            found = f"found the key {describe(key)}"
            faults.append(Fault(dotted(at), found, "keys that are text (put them in quotes)", source=name))
    return plain


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _too_deep(at: tuple[str | int, ...], name: str) -> Fault:
    return Fault(dotted(at[:4]), "nested too deeply", f"at most {MAX_DEPTH} levels", source=name)

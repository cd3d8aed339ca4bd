"""Experiment configs before they are sent: reading files, and changing single fields.

The service checks configs. This module only reads them, in the same dialect: YAML 1.2, where ``1e-3`` is a
number, and ``on`` and ``no`` are text. So a changed config means the same as its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from resolute.errors import InvalidConfigError

_YAML_ADVICE = {
    "<stream end>": "a bracket, a brace or a quote before it is not closed",
    "'\\t'": "indent with spaces, not with tabs",
    "mapping values are not allowed": (
        "put a text with ': ' in it into quotes, or begin the fields of a map in one column"
    ),
    "expected <block end>": "fields of one map stand in one column",
}
"""What to do about common problems, by a part of what the parser says."""


class _Loader(yaml.SafeLoader):
    """The safe loader with the plain scalars of YAML 1.2."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


def _int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 0) if text[:2] in {"0x", "0o"} else int(text)


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(str(loader.construct_scalar(node)).lower().replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _int)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)


def read_config(path: Path) -> str:
    """Reads a config file and makes sure that it is a YAML mapping.

    Returns:
        The text as its author wrote it.

    Raises:
        InvalidConfigError: The file is missing, unreadable, or no YAML mapping.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidConfigError(
            f"{path} is not text in UTF-8: {error.reason} at byte {error.start}; save it as UTF-8"
        ) from error
    except OSError as error:
        remedy = "the config comes before the directory" if path.is_dir() else "check the path"
        raise InvalidConfigError(f"cannot read the config {path}: {error.strerror}; {remedy}") from error
    parse_config(text, name=str(path))
    return text


def parse_config(text: str, *, name: str = "the config") -> dict[str, Any]:
    """Reads a config.

    Args:
        text: YAML, or JSON, which is YAML.
        name: What the text is called in messages.

    Raises:
        InvalidConfigError: It is not YAML, with line and column, or it is no mapping.
    """
    content = _load(text, name)
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidConfigError(f"{name} is a {type(content).__name__}; a mapping of fields was expected")
    return content


def with_overrides(config: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Sets single fields of a config.

    Args:
        config: The config; it is not changed.
        overrides: ``field.below=value`` each; the value is YAML. Missing maps on the way are made.

    Raises:
        InvalidConfigError: An override has no "=", an empty field, a value that is not YAML, or it leads
            through a field that is no map.
    """
    changed = json.loads(config_text(config))
    for override in overrides:
        path, equals, text = override.partition("=")
        fields = path.split(".")
        if not equals or not all(fields):
            raise InvalidConfigError(
                f"{override!r} sets nothing; write --config FIELD.BELOW=VALUE, such as hyperparameters.lr=0.1"
            )
        _set(changed, fields, _load(text, f"the value of {path}"))
    return {str(key): value for key, value in changed.items()}


def with_project(text: str, *, workspace: str, project: str) -> str:
    """Lets a config name where its experiment belongs, in place of what it named."""
    return config_text({**parse_config(text), "workspace": workspace, "project": project})


def config_text(config: Mapping[str, Any]) -> str:
    """Writes a config as JSON, which every dialect of YAML reads alike.

    Raises:
        InvalidConfigError: It holds something that JSON cannot say.
    """
    try:
        return json.dumps(config, indent=2, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidConfigError(f"the config holds something that cannot be sent: {error}") from error


def _set(config: dict[str, Any], fields: Sequence[str], value: Any) -> None:
    for depth, field in enumerate(fields[:-1], start=1):
        below = config.get(field)
        if below is None:
            below = config[field] = {}
        if not isinstance(below, dict):
            raise InvalidConfigError(
                f"cannot set {'.'.join(fields)}: {'.'.join(fields[:depth])} is {below!r}, which is not a map"
            )
        config = below
    config[fields[-1]] = value


def _load(text: str, name: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = str(error.problem or error.context)
        advice = next((f"; {advice}" for part, advice in _YAML_ADVICE.items() if part in problem), "")
        raise InvalidConfigError(f"{name}{where}: not valid YAML: {problem}{advice}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidConfigError(f"{name}: not valid YAML: {error}") from error

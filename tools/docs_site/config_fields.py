"""The fields of the experiment config with their defaults, from the models that check it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from pydantic_core import PydanticUndefined

from resolute.contracts.documents.section import Section
from resolute_config import sections
from resolute_config.experiment import ExperimentConfig

_ATTRIBUTE = re.compile(r"^ {4,8}(\w+): (.+?)(?=^ {4,8}\w+: |\Z)", re.MULTILINE | re.DOTALL)


def page() -> str:
    """Returns the page."""
    parts = ["# Fields of the config\n\n[config.md](../config.md) says what each field does.\n"]
    parts += ["\n".join(_section(model)) for model in _models()]
    return "\n".join(parts)


def _models() -> list[type[Section]]:
    models: list[type[Section]] = [ExperimentConfig]
    for info in iter_modules(sections.__path__):
        module = import_module(f"{sections.__name__}.{info.name}")
        here = [
            one for _, one in inspect.getmembers(module, inspect.isclass) if one.__module__ == module.__name__
        ]
        models += [model for model in here if issubclass(model, Section) and model.model_fields]
    return models


def _section(model: type[Section]) -> Iterator[str]:
    text = inspect.getdoc(model) or ""
    yield f"\n## {model.__name__}\n\n{text.partition(chr(10))[0].replace('``', '`')}\n"
    yield "| field | default | |\n|---|---|---|"
    meanings = _meanings(model)
    for name, field in model.model_fields.items():
        meaning = meanings.get(name) or field.description or ""
        cell = " ".join(meaning.split()).replace("``", "`").replace("|", "\\|")
        yield f"| `{field.alias or name}` | {_default(field)} | {cell} |"
    yield ""


def _meanings(model: type[Section]) -> dict[str, str]:
    meanings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        attributes = (base.__doc__ or "").partition("Attributes:")[2]
        meanings |= dict(_ATTRIBUTE.findall(attributes))
    return meanings


def _default(field: Any) -> str:
    if field.is_required():
        return "**required**"
    value = field.get_default(call_default_factory=True)
    if value is PydanticUndefined or value is None or isinstance(value, Section):
        return ""
    return f"`{value}`".replace("|", "\\|")

"""Turns a user's document into a complete config, in two phases.

The first phase checks each layer separately: its values must be valid, but fields may be missing. The second
checks the merged layers with all defaults: required fields must be present and consistent. Both phases always
run, so that one error lists everything.
"""

from __future__ import annotations

import random as _random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from typing import Any

from pydantic import ValidationError

from resolute.contracts.documents.document import read_document
from resolute.contracts.documents.faults import ConfigError, Fault
from resolute.contracts.documents.rejections import faults_of
from resolute_config.experiment import ExperimentConfig
from resolute_config.layer import Layer
from resolute_config.loading.canonical import canonical
from resolute_config.loading.cross_checks import cross_faults
from resolute_config.loading.defaults import lowest_layer, with_own_defaults
from resolute_config.loading.merge import merge


@dataclass(slots=True)
class _Reading:
    """The parsed documents, and the faults so far."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    unreadable: bool = False

    def add(self, layer: Layer) -> None:
        try:
            document = read_document(layer.content, name=layer.name)
        except ConfigError as error:
            self.faults += error.faults
            self.unreadable = True
            return
        content = canonical(document.content)
        self.documents.append(content)
        self.faults += document.faults
        self.faults += sanity_faults(content, source=layer.name)


def parse_config(
    text: str | bytes | Mapping[str, Any],
    *,
    layers: Sequence[Layer] = (),
    above: Sequence[Layer] = (),
    random: _random.Random | None = None,
    require_entrypoint: bool = True,
) -> ExperimentConfig:
    """Make a complete config of what a user wrote.

    Args:
        text: The user's config: YAML or JSON text, or data.
        layers: What is below it, from the highest to the lowest: a template, then the cluster's defaults.
        above: What wins over it, from the highest to the lowest: what admins decided.
        random: Where the name and the seed come from when no layer gives them; by default the system.
        require_entrypoint: Whether the platform is to start the trials. A run that is only recorded needs no
            entrypoint.

    Raises:
        ConfigError: Something is wrong; the error lists every fault that could be found.
    """
    reading = _Reading()
    for layer in (*above, Layer("", text), *layers):
        reading.add(layer)
    if reading.unreadable:
        raise ConfigError(reading.faults)
    merged: dict[str, Any] = reduce(
        lambda lower, higher: merge(higher, lower), reversed(reading.documents), lowest_layer()
    )
    document = with_own_defaults(merged, random or _random.SystemRandom())
    config, late = _complete(document, require_entrypoint=require_entrypoint)
    faults = [*reading.faults, *_new_faults(late, reading.faults)]
    if config is None or faults:
        raise ConfigError(faults)
    return config


def first_given(field: str, layers: Sequence[Layer]) -> Any:
    """Returns what the highest layer that sets a field of the top level sets it to; None when none does.

    Raises:
        ConfigError: A layer cannot be read.
    """
    for layer in layers:
        value = canonical(read_document(layer.content, name=layer.name).content).get(field)
        if value is not None:
            return value
    return None


def sanity_faults(document: Mapping[str, Any], *, source: str = "") -> list[Fault]:
    """Tell what is wrong in one canonical layer, whatever other layers add to it."""
    try:
        ExperimentConfig.model_validate(dict(document))
    except ValidationError as error:
        return [fault for fault in faults_of(error, source=source) if not fault.incomplete]
    return []


def _complete(
    document: dict[str, Any], *, require_entrypoint: bool
) -> tuple[ExperimentConfig | None, list[Fault]]:
    config: ExperimentConfig | None = None
    faults: list[Fault] = []
    good: dict[str, Any] = {}
    try:
        config = ExperimentConfig.model_validate(document, context=good)
    except ValidationError as error:
        faults = faults_of(error)
    good |= {name: default for name, default in _defaults().items() if document.get(name) is None}
    faults += cross_faults(good, require_entrypoint=require_entrypoint)
    return config, faults


@cache
def _defaults() -> Mapping[str, Any]:
    """Returns the defaults by field. They are made once, because checks only read them."""
    fields = ExperimentConfig.model_fields.items()
    return {
        name: field.get_default(call_default_factory=True)
        for name, field in fields
        if not field.is_required()
    }


def _new_faults(late: Sequence[Fault], early: Sequence[Fault]) -> list[Fault]:
    """Of the merged config's faults those that the layers' own do not explain.

    Where a section of some layer is faulty the merged section is too, at places that may have moved; of such
    sections only what is missing counts.
    """
    paths = {fault.path for fault in early}
    sections = {_section(fault) for fault in early}
    return [
        fault
        for fault in late
        if fault.path not in paths and (fault.incomplete or _section(fault) not in sections)
    ]


def _section(fault: Fault) -> str:
    return fault.path.split(".")[0].split("[")[0]

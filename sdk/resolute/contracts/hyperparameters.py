"""The hyperparameters of one trial, in the form of the config's ``hyperparameters`` section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def constants(hparams: Mapping[str, Any], space: Mapping[str, Any]) -> dict[str, Any]:
    """Makes constants of a trial's values, so that a config reads none as a range; groups stay groups.

    Args:
        hparams: The values of a trial.
        space: The ``hyperparameters`` section that they were sampled from.
    """
    values: dict[str, Any] = {}
    for name, value in hparams.items():
        axis = space.get(name)
        if isinstance(axis, Mapping) and not isinstance(axis.get("type"), str):
            values[name] = constants(value, axis)
        else:
            values[name] = {"type": "const", "val": value}
    return values

"""Reads learning curves from a file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from resolute.client.remote.searches import Curve
from resolute.errors import InvalidArgumentError


def read_curves(path: Path) -> list[Curve]:
    """Reads curves: rows of trial, length and metric as CSV, or a YAML or JSON list of lengths and metrics.

    Args:
        path: The file; CSV by its suffix, else YAML, of which JSON is a part.

    Raises:
        InvalidArgumentError: It is written otherwise, or holds no curve.
    """
    try:
        if path.suffix.lower() == ".csv":
            with path.open(newline="", encoding="utf-8-sig") as stream:
                curves = _from_rows(csv.DictReader(stream))
        else:
            curves = _from_list(yaml.safe_load(path.read_text(encoding="utf-8-sig")))
    except (OSError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise InvalidArgumentError(
            f"{path} cannot be read as learning curves ({error!r}); write CSV with the columns trial, length "
            "and metric, or a list of {lengths: [...], metrics: [...]}"
        ) from error
    if not curves:
        raise InvalidArgumentError(f"{path} holds no learning curve")
    return curves


def _from_rows(rows: Iterable[Mapping[str, str]]) -> list[Curve]:
    points: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        points.setdefault(row["trial"], []).append((float(row["length"]), float(row["metric"])))
    return [
        Curve(tuple(length for length, _ in curve), tuple(metric for _, metric in curve))
        for curve in map(sorted, points.values())
    ]


def _from_list(items: Any) -> list[Curve]:
    return [
        Curve(tuple(map(float, item["lengths"])), tuple(map(float, item["metrics"]))) for item in items or []
    ]

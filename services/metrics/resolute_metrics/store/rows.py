"""Reports in columns, the form in which they arrive in batches, are stored in blocks, and become series."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
NUMBER_BYTES = 8
ROW_BYTES = 2 * NUMBER_BYTES
"""Bytes of a report beside its values: its step and its time."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Reports with the same names, one for each row, by ascending sequence."""

    sequences: Integers
    """Position of each in its source."""
    steps: Integers
    """Steps completed."""
    times: Floats
    """Unix time, seconds."""
    values: Floats
    """One row a report, one column a name."""
    extras: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """By row: what is not a number, and whole numbers that a double does not hold exactly."""

    def __len__(self) -> int:
        return len(self.sequences)

    def where(self, mask: Mask) -> Rows:
        """Returns the rows that a mask selects."""
        if mask.all():
            return self
        extras = self.extras
        if extras:
            places = np.cumsum(mask) - 1
            extras = {int(places[row]): values for row, values in extras.items() if mask[row]}
        return Rows(self.sequences[mask], self.steps[mask], self.times[mask], self.values[mask], extras)

    def advancing(self) -> bool:
        """Returns whether the steps of the rows ascend strictly."""
        return bool((self.steps[1:] > self.steps[:-1]).all())


def join(parts: Sequence[Rows]) -> Rows:
    """Joins rows with the same names, by ascending sequence number."""
    if len(parts) == 1:
        return parts[0]
    sequences = np.concatenate([part.sequences for part in parts])
    order = np.argsort(sequences, kind="stable")
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    extras: dict[int, Mapping[str, Any]] = {}
    if any(part.extras for part in parts):
        places = np.argsort(order)
        for offset, part in zip(offsets, parts, strict=False):
            extras.update({int(places[offset + row]): values for row, values in part.extras.items()})
    return Rows(
        sequences=sequences[order],
        steps=np.concatenate([part.steps for part in parts])[order],
        times=np.concatenate([part.times for part in parts])[order],
        values=np.concatenate([part.values for part in parts])[order],
        extras=extras,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Rows with their group and names."""

    group: str
    names: tuple[str, ...]
    """The columns of the rows' values, sorted."""
    rows: Rows

    def fields(self) -> frozenset[str]:
        """The names of all values, numbers or not."""
        return frozenset(self.names).union(*self.rows.extras.values())

    def where(self, mask: Mask) -> Piece:
        """Returns the rows that a mask selects."""
        return Piece(self.group, self.names, self.rows.where(mask))

    def report(self, row: int) -> dict[str, Any]:
        """Returns one row as values by name."""
        values = dict(zip(self.names, self.rows.values[row].tolist(), strict=True))
        values.update(self.rows.extras.get(row, {}))
        return values


@dataclass(frozen=True, slots=True)
class SingleReport:
    """One report, extracted from its columns."""

    sequence: int
    steps: int
    time: float
    values: Mapping[str, Any]


def pieces_of(group: str, reports: Sequence[SingleReport]) -> Iterator[Piece]:
    """Converts single reports into columns; reports with the same numeric metrics share a piece."""
    by_names: dict[tuple[str, ...], list[SingleReport]] = {}
    for report in reports:
        names = tuple(sorted(name for name, value in report.values.items() if is_number(value)))
        by_names.setdefault(names, []).append(report)
    for names, alike in by_names.items():
        extras = {row: _beside_columns(report.values) for row, report in enumerate(alike)}
        yield Piece(
            group,
            names,
            Rows(
                sequences=np.array([report.sequence for report in alike], dtype=np.int64),
                steps=np.array([report.steps for report in alike], dtype=np.int64),
                times=np.array([report.time for report in alike], dtype=np.float64),
                values=np.array(
                    [[float(report.values[name]) for name in names] for report in alike], dtype=np.float64
                ).reshape(len(alike), len(names)),
                extras={row: values for row, values in extras.items() if values},
            ),
        )


def is_number(value: Any) -> bool:
    """Returns whether a value is stored in a column."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _beside_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in values.items()
        if not is_number(value) or (isinstance(value, int) and int(float(value)) != value)
    }

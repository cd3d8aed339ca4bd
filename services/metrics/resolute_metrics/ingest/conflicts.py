"""Conflicting values: a metric has one value at a step of a run, so one of two values is chosen.

For the searcher's metric the first value counts, because the search has acted on it; for any other metric,
the last. Reports of the same group and steps are merged name by name. Conflicts could be with any stored
report, but steps nearly always increase: only steps that occur twice among reports with a common name are
read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from resolute_metrics.store.rows import Integers, Piece, SingleReport, join, pieces_of


@dataclass(frozen=True, slots=True)
class Refusal:
    """One report that violates a rule: it is not stored, or it has replaced an earlier value."""

    sequence: int
    message: str


class History(Protocol):
    """The earlier reports of the same run in the same group."""

    def steps_shared(self, piece: Piece) -> Integers:
        """Returns the steps of a piece at which one of its metrics was reported before."""

    def values_at(self, steps: Integers) -> dict[int, dict[str, Any]]:
        """Returns all values that were reported at some steps, by step and name."""


def resolve(
    pieces: Sequence[Piece], history: History, *, decisive: str | None
) -> tuple[list[Piece], list[Refusal]]:
    """Divides the reports of one group into those to store and those that contradict stored ones.

    Args:
        pieces: New reports of one run in one group.
        history: What is stored.
        decisive: The metric of the group that a search decides by, whose first value counts; None for none.

    Returns:
        What to store, without values that are known already, and which reports contradict.
    """
    contested = _contested(pieces, history)
    if not contested.size:
        return list(pieces), []
    settled: list[Piece] = []
    disputed: list[SingleReport] = []
    for piece in pieces:
        mask = np.isin(piece.rows.steps, contested)
        if not mask.any():
            settled.append(piece)
            continue
        if not mask.all():
            settled.append(piece.where(~mask))
        disputed += [_single(piece, row) for row in np.flatnonzero(mask).tolist()]
    known = history.values_at(np.unique(np.array([report.steps for report in disputed], dtype=np.int64)))
    in_order = sorted(disputed, key=lambda report: report.sequence)
    kept, refusals = _decide(in_order, known, pieces[0].group, decisive)
    settled += pieces_of(pieces[0].group, kept)
    return merge_pieces(settled), refusals


def merge_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Joins pieces of the same group and names."""
    alike: dict[tuple[str, tuple[str, ...]], list[Piece]] = {}
    for piece in pieces:
        alike.setdefault((piece.group, piece.names), []).append(piece)
    return [
        Piece(group, names, join([piece.rows for piece in parts])) for (group, names), parts in alike.items()
    ]


def _contested(pieces: Sequence[Piece], history: History) -> Integers:
    shared = [history.steps_shared(piece) for piece in pieces]
    for piece in pieces:
        if not piece.rows.advancing():
            values, counts = np.unique(piece.rows.steps, return_counts=True)
            shared.append(values[counts > 1])
    if len(pieces) > 1:
        shared += _shared(pieces)
    return np.unique(np.concatenate(shared)) if shared else np.array([], dtype=np.int64)


def _shared(pieces: Sequence[Piece]) -> Iterator[Integers]:
    """Returns the steps in both pieces, if they have a name in common."""
    spans = sorted(
        (
            (int(piece.rows.steps.min()), int(piece.rows.steps.max()), piece.fields(), piece.rows.steps)
            for piece in pieces
        ),
        key=lambda span: span[0],
    )
    for index, (_, last, fields, steps) in enumerate(spans):
        for other_first, _, other_fields, other_steps in spans[index + 1 :]:
            if other_first > last:
                break
            if not fields.isdisjoint(other_fields):
                yield np.intersect1d(steps, other_steps)


def _single(piece: Piece, row: int) -> SingleReport:
    rows = piece.rows
    return SingleReport(
        int(rows.sequences[row]), int(rows.steps[row]), float(rows.times[row]), piece.report(row)
    )


def _decide(
    reports: Sequence[SingleReport], known: dict[int, dict[str, Any]], group: str, decisive: str | None
) -> tuple[list[SingleReport], list[Refusal]]:
    kept: list[SingleReport] = []
    refusals: list[Refusal] = []
    for report in reports:
        present = known.setdefault(report.steps, {})
        others = [
            name
            for name, value in report.values.items()
            if name in present and not _same(present[name], value)
        ]
        if others:
            first = decisive if decisive in others else others[0]
            refusals.append(Refusal(report.sequence, _explain(group, report, first, present, decisive)))
        fresh = {
            name: value
            for name, value in report.values.items()
            if name not in present or (name in others and name != decisive)
        }
        present.update(fresh)
        if fresh:
            kept.append(SingleReport(report.sequence, report.steps, report.time, fresh))
    return kept, refusals


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        if one == other or (math.isnan(one) and math.isnan(other)):
            return True
        # The same number once in single precision and once in double is no contradiction.
        return one == _single_precision(other) or other == _single_precision(one)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _single_precision(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _explain(
    group: str, report: SingleReport, name: str, present: Mapping[str, Any], decisive: str | None
) -> str:
    rule = "the first counts, as the search decides by it" if name == decisive else "the last counts"
    return (
        f"group {group!r} at step {report.steps}: metric {name!r} was reported as {_short(present[name])} "
        f"and now as {_short(report.values[name])}, {rule}; report each metric once a step, or give the "
        "second another name"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

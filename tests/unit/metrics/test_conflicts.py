"""Settling against a plain model: one value a name and step, of metric a the first, of others the last."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from resolute_metrics.ingest.conflicts import Refusal, resolve
from resolute_metrics.store.rows import Integers, Piece, SingleReport, pieces_of

VALUES = st.sampled_from([1.0, 2.0, "text", True, 2**60 + 1])
REPORTS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=20,
)


class Memory:
    """A history that is all in memory."""

    def __init__(self, known: dict[int, dict[str, Any]]) -> None:
        self.known = known

    def steps_shared(self, piece: Piece) -> Integers:
        fields = piece.fields()
        return np.array(
            [
                step
                for step in set(piece.rows.steps.tolist())
                if not fields.isdisjoint(self.known.get(step, {}))
            ],
            dtype=np.int64,
        )

    def values_at(self, steps: Integers) -> dict[int, dict[str, Any]]:
        return {step: dict(self.known[step]) for step in steps.tolist() if step in self.known}


def _pieces(reports: list[tuple[int, dict[str, Any]]], first: int) -> list[Piece]:
    singles = [
        SingleReport(number, steps, 0.0, values) for number, (steps, values) in enumerate(reports, first)
    ]
    return list(pieces_of("training", singles))


def _model(
    reports: list[tuple[int, dict[str, Any]]], known: dict[int, dict[str, Any]], first: int
) -> list[int]:
    refused = []
    for number, (steps, values) in enumerate(reports, first):
        present = known.setdefault(steps, {})
        same = [repr(values[name]) == repr(present[name]) for name in values if name in present]
        if not all(same):
            refused.append(number)
        known[steps] = {**present, **values, "a": present.get("a", values.get("a"))}
        known[steps] = {name: value for name, value in known[steps].items() if value is not None}
    return refused


def _stored(pieces: list[Piece]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    rows = [
        (int(piece.rows.sequences[row]), step, piece.report(row))
        for piece in pieces
        for row, step in enumerate(piece.rows.steps.tolist())
    ]
    for _, step, values in sorted(rows, key=lambda one: one[0]):
        for name, value in values.items():
            assert name != "a" or name not in found.get(step, {})
            found.setdefault(step, {})[name] = value
    return found


@given(REPORTS, REPORTS)
def test_it_keeps_and_refuses_what_the_model_does(
    before: list[tuple[int, dict[str, Any]]], now: list[tuple[int, dict[str, Any]]]
) -> None:
    known: dict[int, dict[str, Any]] = {}
    expected = _model(before, known, 0)
    kept, refused = resolve(_pieces(before, 0), Memory({}), decisive="a")
    assert [refusal.sequence for refusal in refused] == expected
    assert _stored(kept) == {step: values for step, values in known.items() if values}
    old = {step: dict(values) for step, values in known.items()}
    expected = _model(now, known, len(before))
    kept, refused = resolve(_pieces(now, len(before)), Memory(old), decisive="a")
    assert [refusal.sequence for refusal in refused] == expected
    fresh = _stored(kept)
    for step, values in known.items():
        assert {**old.get(step, {}), **fresh.get(step, {})} == values
    assert not any("a" in old.get(step, {}) and "a" in values for step, values in fresh.items())


def test_advancing_steps_are_passed_on_untouched() -> None:
    pieces = _pieces([(step, {"a": float(step)}) for step in range(5)], 0)
    kept, refused = resolve(pieces, Memory({}), decisive="a")
    assert kept[0] is pieces[0]
    assert refused == []


def test_a_refusal_shows_both_values_shortened() -> None:
    text = "x" * 500
    _, refused = resolve(_pieces([(1, {"a": 1.0}), (1, {"a": text})], 0), Memory({}), decisive="a")
    (refusal,) = refused
    assert isinstance(refusal, Refusal)
    assert "was reported as 1.0 and now as 'xxx" in refusal.message
    assert len(refusal.message) < 300


def test_one_number_in_single_and_in_double_precision_is_no_contradiction() -> None:
    single = float(np.float32(0.1))
    kept, refused = resolve(
        _pieces([(1, {"a": single}), (1, {"a": 0.1}), (1, {"a": 0.11})], 0), Memory({}), decisive="a"
    )
    assert [refusal.sequence for refusal in refused] == [2]
    assert _stored(kept) == {1: {"a": single}}

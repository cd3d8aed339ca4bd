"""Operations as scripts see them."""

import math
from typing import Any

import pytest
from support.training.ranks.threads import rank_outcomes, rank_results

from resolute.core import (
    DistributedContext,
    DummyDistributedContext,
    DummySearcherContext,
    SearcherContext,
    SearcherContextMissing,
    SearcherMode,
    Unit,
)
from resolute.core.searcher import max_length_of, units_of


class Search:
    """Returns operations from a list, as a search would."""

    def __init__(self, *lengths: int) -> None:
        self._lengths = list(lengths)
        self.completed: list[tuple[int, float]] = []
        self.progress: list[float] = []
        self.acknowledged = 0

    def current_length(self) -> int | None:
        return self._lengths[len(self.completed)] if len(self.completed) < len(self._lengths) else None

    def complete(self, length: int, metric: float) -> None:
        self.completed.append((length, metric))

    def report_progress(self, length: float) -> None:
        self.progress.append(length)

    def acknowledge_out_of_ops(self) -> None:
        self.acknowledged += 1


def context_of(search: Search, dist: DistributedContext | None = None) -> SearcherContext:
    return SearcherContext(dist or DummyDistributedContext(), source=search)


def test_operations_come_until_the_search_has_none_left() -> None:
    search = Search(10, 40)
    lengths = []
    for op in context_of(search).operations():
        lengths.append(op.length)
        op.report_progress(op.length - 1)
        op.report_completed(0.5)
    assert lengths == [10, 40]
    assert search.completed == [(10, 0.5), (40, 0.5)]
    assert search.progress == [9, 39]
    assert search.acknowledged == 1


def test_the_promise_to_exit_can_be_left_to_the_script() -> None:
    search = Search(1)
    context = context_of(search)
    for op in context.operations(auto_ack=False):
        op.report_completed(1)
    assert search.acknowledged == 0
    context.acknowledge_out_of_ops()
    assert search.acknowledged == 1


def test_an_operation_must_be_completed_before_the_next() -> None:
    operations = context_of(Search(1, 2)).operations()
    next(operations)
    with pytest.raises(RuntimeError, match=r"must call op\.report_completed"):
        next(operations)


def test_an_operation_is_completed_once() -> None:
    op = next(context_of(Search(1)).operations())
    op.report_completed(1.0)
    with pytest.raises(RuntimeError, match=r"op\.report_completed\(\) was called before"):
        op.report_completed(1.0)


def test_progress_after_completion_must_be_the_whole() -> None:
    search = Search(10)
    op = next(context_of(search).operations())
    op.report_completed(1.0)
    op.report_progress(10)
    with pytest.raises(RuntimeError, match="only 10, the length of the operation"):
        op.report_progress(5)


@pytest.mark.parametrize("metric", [0.5, 3, float("inf"), True])
def test_numbers_complete_an_operation(metric: Any) -> None:
    search = Search(1)
    next(context_of(search).operations()).report_completed(metric)
    assert search.completed == [(1, float(metric))]


def test_nan_completes_an_operation() -> None:
    search = Search(1)
    next(context_of(search).operations()).report_completed(math.nan)
    assert math.isnan(search.completed[0][1])


def test_a_tensor_completes_an_operation() -> None:
    import torch

    search = Search(1)
    next(context_of(search).operations()).report_completed(torch.tensor(0.25))
    assert search.completed == [(1, 0.25)]


@pytest.mark.parametrize("metric", ["good", None, {"loss": 1.0}])
def test_what_is_no_number_completes_nothing(metric: Any) -> None:  # as release 0.30 does
    search = Search(1)
    with pytest.raises(TypeError, match="must be a number"):
        next(context_of(search).operations()).report_completed(metric)
    assert not search.completed


def test_workers_get_the_chiefs_operations() -> None:
    search = Search(3, 7)

    def work(dist: DistributedContext) -> list[int]:
        lengths = []
        for op in context_of(search, dist).operations():
            lengths.append(op.length)
            if dist.rank == 0:
                op.report_completed(1.0)
        return lengths

    assert rank_results(3, work) == [[3, 7]] * 3
    assert search.acknowledged == 1


def test_workers_may_not_speak_for_the_trial() -> None:
    def work(dist: DistributedContext) -> tuple[str, str]:
        op = next(context_of(Search(3), dist).operations())
        if dist.rank == 0:
            return "", ""
        with pytest.raises(RuntimeError) as progress:
            op.report_progress(1)
        with pytest.raises(RuntimeError) as completed:
            op.report_completed(1)
        return str(progress.value), str(completed.value)

    progress, completed = rank_results(2, work)[1]
    assert progress.startswith("op.report_progress() may be called by the chief")
    assert completed.startswith("op.report_completed() may be called by the chief")


def test_chief_only_mode_is_for_the_chief_only() -> None:
    def work(dist: DistributedContext) -> list[int]:
        lengths = []
        for op in context_of(Search(5), dist).operations(SearcherMode.ChiefOnly):
            lengths.append(op.length)
            op.report_completed(1.0)
        return lengths

    chief, worker = rank_outcomes(2, work)
    assert chief == [5]
    with pytest.raises(RuntimeError, match=r"searcher\.operations.*chief"):
        raise worker


def test_off_cluster_there_is_one_operation() -> None:
    context = DummySearcherContext(DummyDistributedContext(), length=4)
    lengths = []
    for op in context.operations():
        lengths.append(op.length)
        op.report_progress(2)
        op.report_completed(0.5)
    assert lengths == [4]
    assert context.get_configured_units() is Unit.EPOCHS


def test_without_a_length_every_call_says_why() -> None:
    context = SearcherContextMissing()
    for call in (context.operations, context.acknowledge_out_of_ops, context.get_configured_units):
        with pytest.raises(ValueError, match=r"no searcher\.max_length"):
            call()


@pytest.mark.parametrize(
    ("searcher", "units", "length"),
    [
        ({"max_length": {"epochs": 3}}, Unit.EPOCHS, 3),
        ({"max_length": {"batches": 300}}, Unit.BATCHES, 300),
        ({"max_length": {"records": 9}}, Unit.RECORDS, 9),
        ({"max_length": 7}, None, 7),
        ({"length_per_round": {"batches": 5}}, Unit.BATCHES, None),
        ({"name": "custom", "unit": "batches"}, Unit.BATCHES, None),
        ({"name": "custom", "unit": None}, None, None),
        ({}, None, None),
    ],
)
def test_units_and_length_are_read_from_the_config(
    searcher: dict[str, Any], units: Unit | None, length: int | None
) -> None:
    assert units_of(searcher) is units
    assert max_length_of(searcher) == length


def test_the_modes_have_their_documented_values() -> None:
    assert [mode.value for mode in SearcherMode] == ["WORKERS_ASK_CHIEF", "CHEIF_ONLY"]

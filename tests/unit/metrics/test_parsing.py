"""Batches from the wire."""

from __future__ import annotations

import uuid

import numpy as np
import pytest
from support.services.metrics import Report, block, blocks_of

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1 import report_pb2
from resolute.errors import InvalidArgumentError
from resolute_metrics.ingest.parsing import parse_batch
from resolute_metrics.queries.validations import Goal


def _request(
    *blocks: report_pb2.ReportBlock, first: int = 0, count: int | None = None
) -> api.IngestReportsRequest:
    return api.IngestReportsRequest(
        trial_id=str(uuid.uuid4()),
        run=1,
        source="rank0",
        experiment_id=str(uuid.uuid4()),
        first_sequence=first,
        count=sum(len(one.sequences) for one in blocks) if count is None else count,
        blocks=blocks,
        searcher_metric="accuracy",
    )


def test_a_block_becomes_a_piece_with_sorted_names() -> None:
    batch = parse_batch(_request(block("training", [4, 5], [1, 2], b=[1, 2], a=[3, 4]), first=4))
    (piece,) = batch.pieces
    assert (batch.first_sequence, batch.count, batch.end) == (4, 2, 6)
    assert batch.goal == Goal("accuracy", False)
    assert piece.names == ("a", "b")
    assert piece.rows.values.tolist() == [[3, 1], [4, 2]]
    assert piece.report(1) == {"a": 4, "b": 2}


def test_numbers_that_came_as_extras_get_a_column_as_well() -> None:
    big = 2**60 + 1
    reports: list[Report] = [
        ("training", 1, {"a": 1.0, "note": "x"}),
        ("training", 2, {"a": 2.0, "n": big}),
        ("training", 3, {"a": 3.0}),
    ]
    batch = parse_batch(_request(*blocks_of(reports)))
    found = {
        int(piece.rows.sequences[row]): piece.report(row)
        for piece in batch.pieces
        for row in range(len(piece.rows))
    }
    assert found == {0: {"a": 1, "note": "x"}, 1: {"a": 2, "n": big}, 2: {"a": 3}}
    assert sorted(piece.names for piece in batch.pieces) == [("a",), ("a",), ("a", "n")]
    assert sorted(np.concatenate([piece.rows.sequences for piece in batch.pieces])) == [0, 1, 2]


def test_a_request_without_a_searcher_metric_has_no_goal() -> None:
    request = _request(block("training", [0], [1], a=[1]))
    request.searcher_metric = ""
    assert parse_batch(request).goal is None


def _broken(kind: str) -> report_pb2.ReportBlock:
    made = block("training", [0, 1], [1, 2], a=[1, 2])
    if kind == "steps":
        made.steps.pop()
    elif kind == "values":
        made.values.append(1)
    elif kind == "names":
        made.names.append("a")
        made.values.extend([1, 2])
    elif kind == "order":
        made.sequences[:] = [1, 0]
    elif kind == "gap":
        made.sequences[:] = [0, 2]
    elif kind == "row":
        made.extras.append(report_pb2.ReportBlock.Extra(row=2))
    elif kind == "twice":
        made.extras.append(report_pb2.ReportBlock.Extra(row=0))
        made.extras[0].values["a"].string_value = "x"
    elif kind == "empty value":
        made.extras.append(report_pb2.ReportBlock.Extra(row=0))
        made.extras[0].values["b"].SetInParent()
    return made


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("steps", r"blocks\[0\] has 2 sequences, 1 steps"),
        ("values", "3 values for 1 names"),
        ("names", "holds a name twice"),
        ("order", "must ascend"),
        ("gap", "each sequence from 0 to below 2 exactly once"),
        ("row", "names row 2, which the block lacks"),
        ("twice", "repeats 'a', which has a column"),
        ("empty value", "row 0: a value without a kind"),
    ],
)
def test_a_block_that_is_not_whole_is_refused(kind: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        parse_batch(_request(_broken(kind)))


def test_blocks_must_not_share_a_sequence() -> None:
    one = block("training", [0], [1], a=[1])
    with pytest.raises(InvalidArgumentError, match="exactly once"):
        parse_batch(_request(one, one))

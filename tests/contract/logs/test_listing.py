"""Filters and pages."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from support.services.logs import Logs, line

from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.errors import InvalidArgumentError
from resolute_logs.queries import pages


@pytest.fixture
def filled(logs: Logs) -> Logs:
    logs.send(
        line("starting up", seconds=1, origin="supervisor", stdtype=""),
        line("Epoch 1: loss=0.5", seconds=2, rank=0, level=line_pb2.LEVEL_INFO),
        line("careful: 100% full", seconds=3, rank=1, level=line_pb2.LEVEL_WARNING, stdtype="stderr"),
        line("Straße gesperrt", seconds=4, rank=1, container="c2", agent="a2"),
    )
    logs.send(
        line("EPOCH 2: loss=nan", seconds=5, rank=0, level=line_pb2.LEVEL_ERROR),
        line("debug detail", seconds=6, rank=2, level=line_pb2.LEVEL_DEBUG),
        run=2,
    )
    return logs


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, "sEcSed"),
        ({"ranks": [1]}, "cS"),
        ({"ranks": [0, 2]}, "Eed"),
        ({"min_level": line_pb2.LEVEL_WARNING}, "ce"),
        ({"min_level": line_pb2.LEVEL_INFO}, "sEcSe"),
        ({"min_level": line_pb2.LEVEL_DEBUG}, "sEcSed"),
        ({"start_time": 3}, "cSed"),
        ({"end_time": 3}, "sE"),
        ({"start_time": 2, "end_time": 4}, "Ec"),
        ({"text": "epoch"}, "Ee"),
        ({"text": "100%"}, "c"),
        ({"text": "1_0"}, ""),
        ({"text": "STRASSE"}, ""),
        ({"text": "STRAßE"}, "S"),
        ({"regex": r"loss=\d"}, "E"),
        ({"regex": r"(?i)epoch \d"}, "Ee"),
        ({"regex": r"^S\pL+e\b"}, "S"),
        ({"stdtypes": ["stderr"]}, "c"),
        ({"stdtypes": [""]}, "s"),
        ({"origins": ["supervisor"]}, "s"),
        ({"runs": [2]}, "ed"),
        ({"containers": ["c2", "c3"]}, "S"),
        ({"agents": ["a1", "a2"]}, "S"),
        ({"agents": [""]}, "sEced"),
        ({"ranks": [0], "runs": [2], "text": "loss"}, "e"),
        ({"ranks": [7]}, ""),
    ],
)
@pytest.mark.parametrize("page_size", [0, 1])
def test_every_set_condition_must_hold(
    filled: Logs, wanted: dict[str, Any], expected: str, page_size: int
) -> None:
    letters = {"s": "starting", "E": "Epoch", "c": "careful", "S": "Straße", "e": "EPOCH", "d": "debug"}
    found = filled.messages(page_size=page_size, **wanted)
    assert [text.split()[0].rstrip(":") for text in found] == [letters[letter] for letter in expected]
    backwards = filled.messages(page_size=page_size, descending=True, **wanted)
    assert backwards == found[::-1]


@pytest.mark.parametrize("size", [1, 3, 10, 1000])
@pytest.mark.parametrize("descending", [False, True])
def test_pages_hold_each_line_once(logs: Logs, size: int, descending: bool) -> None:
    texts = [str(number) for number in range(25)]
    logs.send(*texts)
    listed = logs.pages(page_size=size, descending=descending)
    assert all(len(page) == size for page in listed[:-1])
    assert 0 < len(listed[-1]) <= size
    found = [one.message for page in listed for one in page]
    assert found == (texts[::-1] if descending else texts)


def test_head_and_tail_are_first_pages(logs: Logs) -> None:
    logs.send(*(str(number) for number in range(100)))
    assert [one.message for one in logs.pages(page_size=3)[0]] == ["0", "1", "2"]
    assert [one.message for one in logs.pages(page_size=3, descending=True)[0]] == ["99", "98", "97"]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("wanted", [{"text": "needle"}, {"regex": "n[e]+dle"}])
def test_a_page_looks_at_a_bounded_stretch_and_the_token_goes_on(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, descending: bool, wanted: dict[str, Any]
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 10)
    monkeypatch.setattr(pages, "MAX_WINDOWS", 2)
    logs.send(*("needle" if number in (45, 77) else "hay" for number in range(100)))
    found = logs.pages(descending=descending, **wanted)
    assert len(found) >= 5
    assert [one.message for page in found for one in page] == ["needle", "needle"]


def test_a_page_ends_before_it_is_too_large_for_a_message(logs: Logs) -> None:
    for first in range(0, 800, 200):
        logs.send(*("x" * 8192 for _ in range(200)), first=first)
    found = logs.pages(page_size=1000)
    assert len(found) > 1
    assert sum(len(page) for page in found) == 800
    assert all(sum(one.ByteSize() for one in page) < 4 << 20 for page in found)


def test_what_nobody_wrote_is_empty(logs: Logs) -> None:
    assert logs.pages() == [[]]
    assert logs.pages(descending=True) == [[]]


@pytest.mark.parametrize("regex", ["(", "a{99999}", r"(?=x)", r"(a)\1", "x" * 1001, r"[\pL\pN]{1,900}z"])
def test_a_regular_expression_that_cannot_be_run_safely_is_refused(logs: Logs, regex: str) -> None:
    with pytest.raises(InvalidArgumentError, match="regular expression") as caught:
        logs.messages(regex=regex)
    assert caught.value.violations[0].field == "filter.regex"


def test_a_regular_expression_that_explodes_elsewhere_is_harmless(logs: Logs) -> None:
    logs.send(*("a" * 8000 + "b" for _ in range(100)))
    assert logs.messages(regex=r"^(a|aa)+$") == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"text": "a\0"}, "NUL"),
        ({"origins": ["a\0"]}, "NUL"),
        ({"ranks": range(1001)}, "more than 1000 choices"),
        ({"text": "x" * 1001}, "longer than 1000"),
    ],
)
def test_a_wrong_filter_is_an_error_that_names_the_field(
    logs: Logs, wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        logs.messages(**wanted)


def test_a_page_token_of_another_filter_is_refused(filled: Logs) -> None:
    request = api.ListLinesRequest(filter=filled.filter(), page_size=1)
    token = filled.call("ListLines", request).next_page_token
    other = api.ListLinesRequest(filter=filled.filter(ranks=[1]), page_size=1, page_token=token)
    with pytest.raises(InvalidArgumentError, match="other filters"):
        filled.call("ListLines", other)


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("descending", [False, True])
def test_the_lines_of_all_trials_of_an_experiment_come_in_the_order_of_arrival(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, size: int, descending: bool
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 4)
    second, stranger, strange = (str(uuid.uuid4()) for _ in range(3))
    logs.send("a")
    logs.send("b", trial=second)
    logs.send(*"........", trial=stranger, experiment=strange)
    logs.send("c", first=1)
    logs.send("d", trial=second, first=1)
    logs.send(*"....", trial=stranger, experiment=strange, source="later")
    wanted = {"trial_id": "", "experiment_id": logs.experiment}
    found = [one for page in logs.pages(page_size=size, descending=descending, **wanted) for one in page]
    expected = [("a", logs.trial), ("b", second), ("c", logs.trial), ("d", second)]
    assert [(one.message, one.trial_id) for one in found] == (expected[::-1] if descending else expected)
    assert logs.messages(text="C", **wanted) == ["c"]


@pytest.mark.parametrize("wanted", [{}, {"text": "Epoch"}])
def test_a_list_can_begin_behind_a_line(filled: Logs, wanted: dict[str, Any]) -> None:
    def behind(line_id: int, order_by: str) -> list[int]:
        request = api.ListLinesRequest(
            filter=filled.filter(**wanted), behind_line_id=line_id, order_by=order_by
        )
        return [one.line_id for one in filled.call("ListLines", request).lines]

    ids = [one.line_id for page in filled.pages(**wanted) for one in page]
    assert behind(ids[0], "") == ids[1:]
    assert behind(ids[-1], "line_id desc") == ids[-2::-1]
    with pytest.raises(InvalidArgumentError, match="behind_line_id is -1"):
        behind(-1, "")


def test_a_filter_names_a_trial_or_an_experiment(logs: Logs) -> None:
    with pytest.raises(InvalidArgumentError, match="set the one that is wanted"):
        logs.messages(experiment_id=logs.experiment)

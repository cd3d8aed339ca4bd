"""Lines arrive exactly once and keep their order."""

from __future__ import annotations

import uuid

import pytest
from support.services.logs import Logs, line, logs_on

from resolute.api.logs.v1 import line_pb2
from resolute.errors import FailedPreconditionError, InvalidArgumentError


def test_lines_come_back_as_they_were_written(logs: Logs) -> None:
    sent = line(
        "hello, wörld",
        seconds=1700000000.123456789,
        level=line_pb2.LEVEL_WARNING,
        rank=3,
        stdtype="stderr",
        container="c1",
        agent="a1",
    )
    assert logs.send(sent, run=2) == 1
    ((found,),) = logs.pages()
    assert (found.message, found.level, found.rank, found.stdtype) == (
        "hello, wörld",
        line_pb2.LEVEL_WARNING,
        3,
        "stderr",
    )
    assert (found.run, found.trial_id, found.origin) == (2, logs.trial, "task")
    assert (found.container, found.agent) == ("c1", "a1")
    assert found.time == sent.time
    assert found.line_id > 0


def test_a_line_without_a_rank_has_none_and_rank_zero_is_a_rank(logs: Logs) -> None:
    logs.send(line("a"), line("b", rank=0))
    assert [one.HasField("rank") for one in logs.pages()[0]] == [False, True]


def test_a_batch_that_comes_again_changes_nothing(logs: Logs) -> None:
    assert logs.send("a", "b") == 2
    assert logs.send("a", "b") == 2
    assert logs.send("a") == 2
    assert logs.messages() == ["a", "b"]


def test_of_a_batch_that_overlaps_only_the_new_part_is_taken(logs: Logs) -> None:
    logs.send("a", "b")
    assert logs.send("b", "c", "d", first=1) == 4
    assert logs.messages() == ["a", "b", "c", "d"]


def test_a_gap_is_refused_with_the_expected_sequence(logs: Logs) -> None:
    logs.send("a")
    with pytest.raises(FailedPreconditionError, match="begins at sequence 3 and 1 was expected") as caught:
        logs.send("d", first=3)
    assert caught.value.metadata["expected_sequence"] == "1"


def test_sources_are_interleaved_as_they_arrive_and_each_keeps_its_order(logs: Logs) -> None:
    logs.send("a0", "a1", source="a")
    logs.send("b0", source="b")
    logs.send("a2", source="a", first=2)
    logs.send("c0", source="a", run=2)
    assert logs.messages() == ["a0", "a1", "b0", "a2", "c0"]
    ids = [one.line_id for one in logs.pages()[0]]
    assert ids == sorted(set(ids))


def test_a_large_batch_keeps_its_order(logs: Logs) -> None:
    texts = [f"line {number}" for number in range(5000)]
    logs.send(*texts)
    assert logs.messages(page_size=10_000) == texts


def test_everything_is_there_after_a_restart(database_url: str) -> None:
    with logs_on(database_url) as before:
        before.send("a")
    with logs_on(database_url) as after:
        after.trial, after.experiment = before.trial, before.experiment
        assert after.send("a", "b") == 2
        assert after.messages() == ["a", "b"]


def test_a_nul_character_is_made_visible(logs: Logs) -> None:
    logs.send("a\0b")
    assert logs.messages() == ["a�b"]


@pytest.mark.parametrize("text", ["x" * 8192, "ü" * 4096, ""])
def test_a_line_may_have_8_kib(logs: Logs, text: str) -> None:
    logs.send(text)
    assert logs.messages() == [text]


@pytest.mark.parametrize("text", ["x" * 8193, "ü" * 4097])
def test_a_longer_line_is_refused(logs: Logs, text: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"line 1 of the batch has 819[34] bytes and may have 8192"
    ):
        logs.send("short", text)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (line("a", level=99), "level that is none of"),
        (line("a", stdtype="stdfoo"), "neither stdout, stderr nor empty"),
        (line("a", origin="x" * 201), "origin 'x+' is over 200 characters"),
    ],
)
def test_a_wrong_line_is_an_error_that_says_what_is_wrong(
    logs: Logs, wrong: line_pb2.Line, message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        logs.send(wrong)


def test_every_column_has_an_entry_for_each_line(logs: Logs) -> None:
    request = logs.request(["a", "b"])
    request.lines.ranks.append(1)
    with pytest.raises(InvalidArgumentError, match="the column ranks has 3 entries for 2 messages"):
        logs.call("IngestLines", request)


def test_a_line_of_an_unknown_writer_is_refused(logs: Logs) -> None:
    request = logs.request(["a", "b"])
    request.lines.writer_indexes[1] = 2
    with pytest.raises(InvalidArgumentError, match="a writer that is none of 2"):
        logs.call("IngestLines", request)


def test_a_trial_cannot_change_its_experiment(logs: Logs) -> None:
    logs.send("a")
    with pytest.raises(InvalidArgumentError, match="belongs to another experiment"):
        logs.send("b", experiment=str(uuid.uuid4()))

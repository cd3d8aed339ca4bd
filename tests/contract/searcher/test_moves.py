"""The log in brief: the same as the log itself, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.services.searcher import TIMED, Player, SearchSession, adaptive, exited, run, searcher

from resolute.api.searcher.v1 import event_pb2, operation_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.errors import InvalidArgumentError, NotFoundError

Kind = service_pb.MoveKind
Move = tuple[int, str, str, float | None, float | None, tuple[int, float] | None]
"""Position of the entry, what was done, to which trial, metric, place, rung and threshold."""


@pytest.fixture
def backend(database_url: str, tmp_path: Path) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


def written_out(response: service_pb.ListMovesResponse) -> Iterator[Move]:
    """The moves of an answer, one after the other."""
    metrics, places = iter(response.metrics), iter(response.places)
    limits = {
        move: (rung, threshold)
        for move, rung, threshold in zip(
            response.threshold_moves, response.threshold_rungs, response.thresholds, strict=True
        )
    }
    at = 0
    for entry, count in enumerate(response.move_counts):
        for move in range(at, at + count):
            kind = Kind.Name(response.kinds[move]).removeprefix("MOVE_KIND_")
            yield (
                response.first_sequence + entry,
                kind,
                response.trial_keys[response.trials[move]],
                next(metrics) if kind in ("COMPLETED", "REPORTED") else None,
                next(places) if kind in ("CREATE", "TRAIN", "PROMOTE", "COMPLETED") else None,
                limits.get(move),
            )
        at += count
    assert at == len(response.kinds) == len(response.trials)
    assert next(metrics, None) is None
    assert next(places, None) is None


def expected(entry: event_pb2.LogEntry) -> Iterator[Move]:
    """The moves of an entry of the log."""
    events = {
        "validation_completed": "COMPLETED",
        "validation_reported": "REPORTED",
        "trial_exited": "EXITED",
        "retried": "RETRIED",
    }
    operations = {
        "create": ("CREATE", "bracket"),
        "validate_after": ("TRAIN", "length"),
        "promote": ("PROMOTE", "rung"),
        "close": ("CLOSE", ""),
        "stop": ("CLOSE", ""),
    }
    position, kind = entry.event.sequence, entry.event.WhichOneof("kind") or ""
    event = getattr(entry.event, kind)
    if hasattr(event, "trial_key"):
        completed = kind == "validation_completed"
        yield (
            position,
            events.get(kind, "UNSPECIFIED"),
            event.trial_key,
            getattr(event, "metric", None),
            float(event.length) if completed else None,
            None,
        )
    for operation in entry.operations:
        name = operation.WhichOneof("kind") or ""
        if name in operations:
            yield _decided(position, operation, *operations[name])


def _decided(position: int, operation: operation_pb2.Operation, kind: str, place: str) -> Move:
    detail = getattr(operation, operation.WhichOneof("kind") or "")
    reason = operation.reason
    limit = (
        (reason.rung, reason.threshold) if reason.HasField("rung") and reason.HasField("threshold") else None
    )
    return position, kind, detail.trial_key, None, float(getattr(detail, place)) if place else None, limit


def test_moves_are_those_of_the_log(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            await session.create(adaptive(max_trials=24))
            await Player(session.client, session.search_id, float).play()
            log = await session.log()

            async def listed(**fields: Any) -> service_pb.ListMovesResponse:
                request = service_pb.ListMovesRequest(search_id=session.search_id, **fields)
                return await session.client.ListMoves(request)

            whole = await listed()
            moves = list(written_out(whole))
            assert moves == [move for entry in log for move in expected(entry)]
            assert {kind for _, kind, *_ in moves} >= {"CREATE", "TRAIN", "COMPLETED", "CLOSE"}
            assert any(limit for *_, limit in moves)
            assert len(whole.trial_keys) == 24
            assert whole.times[0] == pytest.approx(log[0].event.append_time.ToNanoseconds() / 1e9)
            assert not whole.next_page_token

            pages: list[Move] = []
            token, count = "", 0
            while token or not count:
                page = await listed(page_size=7, page_token=token)
                pages += written_out(page)
                token, count = page.next_page_token, count + 1
            assert (pages, count) == (moves, -(-len(log) // 7))
            later = await listed(after_sequence=len(log) - 2)
            assert (later.first_sequence, len(later.times)) == (len(log) - 1, 2)
            assert await listed(after_sequence=len(log)) == service_pb.ListMovesResponse()
            with pytest.raises(InvalidArgumentError, match="after_sequence"):
                await listed(after_sequence=-1)
            unknown = service_pb.ListMovesRequest(search_id=session.search_id.replace("5", "6"))
            with pytest.raises(NotFoundError):
                await session.client.ListMoves(unknown)

    run(scenario)


def test_reports_and_exits_are_moves(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            session = SearchSession(service)
            first, second = await session.trials(TIMED)
            await session.validate(first.trial_id, 1, metric=0.5, time_metric=30.0)
            await session.report(exited(second.trial_key, event_pb2.EXIT_REASON_ERRORED))
            response = await session.client.ListMoves(
                service_pb.ListMovesRequest(search_id=session.search_id)
            )
            moves = list(written_out(response))
            assert moves == [move for entry in await session.log() for move in expected(entry)]
            assert {"REPORTED", "EXITED"} <= {kind for _, kind, *_ in moves}

    run(scenario)


def test_entries_are_listed_by_their_positions(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            session = SearchSession(service)
            await session.create(adaptive())
            await Player(session.client, session.search_id, float).play()

            async def listed(**fields: Any) -> tuple[list[int], str]:
                request = service_pb.ListEventsRequest(search_id=session.search_id, **fields)
                response = await session.client.ListEvents(request)
                return [entry.event.sequence for entry in response.entries], response.next_page_token

            assert (await listed(sequences=[7, 2, 9, 100_000]))[0] == [2, 7, 9]
            found, token = await listed(sequences=[7, 2, 9], page_size=2)
            assert found == [2, 7]
            assert await listed(sequences=[7, 2, 9], page_size=2, page_token=token) == ([9], "")
            assert await listed(sequences=[7, 2, 9], order_by="sequence desc") == ([9, 7, 2], "")
            with pytest.raises(InvalidArgumentError, match="at most 1000"):
                await listed(sequences=range(1, 1002))

    run(scenario)

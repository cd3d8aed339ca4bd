"""A log that reaches its limit of bytes: training goes on, and the log says what is missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.services.logs import Logs, line, logs_on
from support.services.processes.killable import some_run

from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.errors import InvalidArgumentError
from resolute_logs.store.deletion import delete_expired
from resolute_logs.store.schema import INTAKE
from resolute_serving.context import TrialRun, current_principal
from resolute_serving.ingestion import tables
from resolute_serving.ingestion.byte_limits import ByteLimits

LINE = 100 + 100
"""Bytes of a line of a hundred characters, as they are counted."""


def limited(*, trial: int = 0, workspace: int = 0) -> ByteLimits:
    return ByteLimits(prefix="RESOLUTE_LOGS", trial=trial * LINE, workspace=workspace * LINE)


@pytest.fixture
def logs(database_url: str) -> Iterator[Logs]:
    """A service that keeps three lines of a hundred characters of each trial."""
    with logs_on(database_url, limits=limited(trial=3)) as service:
        yield service


def text(number: int) -> str:
    return f"{number:0100}"


def dropped(logs: Logs) -> list[api.ListDroppedLinesResponse.DroppedLines]:
    request = api.ListDroppedLinesRequest(experiment_id=logs.experiment)
    return list(logs.call("ListDroppedLines", request).trials)


def test_lines_beyond_the_limit_are_dropped_and_the_log_says_so(logs: Logs) -> None:
    assert logs.send(*map(text, range(5))) == 5
    assert logs.send("short", first=5) == 6
    (page,) = logs.pages()
    assert [one.message for one in page[:3]] == [text(0), text(1), text(2)]
    (marker,) = page[3:]
    assert (marker.level, marker.stdtype, marker.origin) == (line_pb2.LEVEL_WARNING, "", "logs")
    assert marker.message == (
        "WARNING: 2 lines of this log (400 B) were dropped so far: "
        "the trial has reached 600 B (RESOLUTE_LOGS_TRIAL_BYTES)"
    )
    (found,) = dropped(logs)
    assert (found.trial_id, found.lines, found.bytes) == (logs.trial, 3, 2 * LINE + 105)
    assert "3 lines of this log" in found.explanation


def test_a_batch_that_comes_again_drops_nothing_twice(logs: Logs) -> None:
    for _ in range(2):
        assert logs.send(*map(text, range(5))) == 5
    assert (len(logs.messages()), dropped(logs)[0].lines) == (4, 2)


def test_the_log_says_so_again_at_ten_times_as_many_and_at_its_end(logs: Logs) -> None:
    logs.send(*map(text, range(4)))
    for number in range(4, 16):
        logs.send(text(number), first=number)
    said = [message for message in logs.messages() if message.startswith("WARNING")]
    assert [message.split()[1] for message in said] == ["1", "10"]
    for _ in range(2):
        logs.close_trial()
    said = [message for message in logs.messages() if message.startswith("WARNING")]
    assert [message.split()[1] for message in said] == ["1", "10", "13"]


def test_other_trials_and_other_experiments_are_not_concerned(logs: Logs) -> None:
    logs.send(*map(text, range(5)))
    other = logs.anew()
    other.send(*map(text, range(3)))
    assert (len(other.messages()), dropped(other)) == (3, [])


def test_a_log_goes_on_when_the_limit_is_raised(logs: Logs, database_url: str) -> None:
    logs.send(*map(text, range(5)))
    with logs_on(database_url, limits=limited(trial=4)) as raised:
        again = Logs(raised.servicer, raised.database, logs.experiment, logs.trial)
        again.send(text(5), text(6), first=5)
        assert again.messages()[4:] == [text(5)]
    with logs_on(database_url, limits=limited()) as unlimited:
        again = Logs(unlimited.servicer, unlimited.database, logs.experiment, logs.trial)
        again.send(*map(text, range(7, 100)), first=7)
        assert again.messages()[-1] == text(99)


def test_a_workspace_has_a_limit_of_its_own(database_url: str) -> None:
    run = some_run()
    principal = TrialRun(
        trial_id=run.trial_id, run=1, experiment_id="", allocation_id="", workspace="w", workspace_id=7
    )
    with logs_on(database_url, limits=limited(workspace=3)) as logs:
        token = current_principal.set(principal)
        logs.send(*map(text, range(3)))
        # A service that starts knows nothing of what it looked up before.
    with logs_on(database_url, limits=limited(workspace=3)) as logs:
        logs.send(text(0))
        (marker,) = logs.messages()
        assert "its workspace has reached 600 B (RESOLUTE_LOGS_WORKSPACE_BYTES)" in marker
        current_principal.reset(token)
        other = logs.anew()
        other.send(text(0))
        assert other.messages() == [text(0)]


def test_lines_that_retention_removes_make_room(logs: Logs) -> None:
    logs.send(*(line(text(number), seconds=number) for number in range(3)))

    def remove(link: object) -> int:
        delete_expired(link, before=1.5)  # type: ignore[arg-type]
        found = INTAKE.lock_usage(link, logs.trial)  # type: ignore[arg-type]
        assert found is not None
        return found[1].bytes

    assert logs.run(lambda: logs.database.write(remove)) == LINE
    logs.send(text(3), text(4), text(5), first=3)
    assert [message for message in logs.messages() if not message.startswith("W")] == [
        text(2),
        text(3),
        text(4),
    ]


def test_a_run_sends_from_a_bounded_number_of_sources(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_SOURCES", 2)
    assert [logs.send("a", source=f"spool {number}") for number in range(2)] == [1, 1]
    with pytest.raises(InvalidArgumentError, match="has sent from 2 sources"):
        logs.send("a", source="spool 2")
    assert logs.send("b", source="spool 0", first=1) == 2
    assert logs.send("a", source="spool 2", run=2) == 1


def test_limits_are_settings() -> None:
    read = ByteLimits.from_environment
    assert read({}, prefix="RESOLUTE_LOGS") == ByteLimits(
        prefix="RESOLUTE_LOGS", trial=1 << 30, workspace=100 << 30
    )
    found = read(
        {"RESOLUTE_LOGS_TRIAL_BYTES": "0", "RESOLUTE_LOGS_WORKSPACE_BYTES": "5"}, prefix="RESOLUTE_LOGS"
    )
    assert (found.trial, found.workspace) == (0, 5)
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_LOGS_TRIAL_BYTES is '1G'"):
        read({"RESOLUTE_LOGS_TRIAL_BYTES": "1G"}, prefix="RESOLUTE_LOGS")

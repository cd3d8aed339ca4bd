"""Following: every line once and in order, until the trial is closed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from support.services.logs import LIMITS, Logs, following, logs_on

from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import InvalidArgumentError, UnavailableError
from resolute_logs.servicer import Servicer
from resolute_serving.following import PollIntervals


@pytest.fixture
def patient(shared: Logs) -> Logs:
    """A service whose followers only look when they are told."""
    fresh = shared.anew()
    pace = PollIntervals(recheck=3600, heartbeat=3600)
    return replace(fresh, servicer=Servicer(fresh.database, limits=LIMITS, clock=SYSTEM_CLOCK, pace=pace))


class _Follow:
    """One stream and what came out of it."""

    def __init__(self, logs: Logs, *, after: int | None = None, **wanted: object) -> None:
        request = following(logs.filter(**wanted), after=after)
        self.found: list[str] = []
        self._responses = logs.servicer.FollowLines(request, None)
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._collect())

    async def _collect(self) -> list[str]:
        async for response in self._responses:
            self.found += [one.message for one in response.lines]
            self._news.set()
        return self.found

    async def until(self, count: int) -> None:
        while len(self.found) < count:
            self._news.clear()
            await self._news.wait()


async def _whole(logs: Logs, **options: object) -> list[str]:
    return await _Follow(logs, **options).task  # type: ignore[arg-type]


async def _send(logs: Logs, *texts: str, **options: object) -> None:
    await logs.servicer.IngestLines(logs.request(texts, **options), None)  # type: ignore[arg-type]


async def _close(logs: Logs) -> None:
    await logs.servicer.CloseTrialLogs(api.CloseTrialLogsRequest(trial_id=logs.trial), None)


def test_a_follower_gets_what_is_there_and_what_comes_until_the_trial_is_closed(patient: Logs) -> None:
    async def scenario() -> list[str]:
        await _send(patient, "a", "b")
        follower = _Follow(patient)
        await follower.until(2)
        await _send(patient, "c", first=2)
        await follower.until(3)
        await _send(patient, "d", source="other")
        await _close(patient)
        return await follower.task

    assert patient.run(scenario) == ["a", "b", "c", "d"]


def test_a_follower_may_come_before_the_first_line(patient: Logs) -> None:
    async def scenario() -> list[str]:
        follower = _Follow(patient)
        await asyncio.sleep(0)
        await _send(patient, "a")
        await follower.until(1)
        await _close(patient)
        return await follower.task

    assert patient.run(scenario) == ["a"]


def test_a_follower_of_a_closed_trial_gets_everything_and_ends(patient: Logs) -> None:
    patient.send(*(str(number) for number in range(5000)))
    patient.close_trial()
    patient.close_trial()
    assert patient.run(lambda: _whole(patient)) == [str(number) for number in range(5000)]


def test_a_trial_that_never_wrote_can_be_closed(patient: Logs) -> None:
    patient.close_trial()
    assert patient.run(lambda: _whole(patient)) == []


def test_a_later_line_opens_the_trial_again(patient: Logs) -> None:
    async def scenario() -> list[str]:
        await _send(patient, "a")
        await _close(patient)
        await _send(patient, "b", first=1)
        follower = _Follow(patient)
        await follower.until(2)
        assert not follower.task.done()
        await _close(patient)
        return await follower.task

    assert patient.run(scenario) == ["a", "b"]


def test_a_follower_goes_on_after_a_line_and_filters(patient: Logs) -> None:
    patient.send("one a", "two b", "three a", "four a")
    patient.close_trial()
    second = patient.pages()[0][1].line_id
    assert patient.run(lambda: _whole(patient, after=second, text="A")) == ["three a", "four a"]


def test_many_followers_each_get_every_line(patient: Logs) -> None:
    async def scenario() -> list[list[str]]:
        followers = [_Follow(patient) for _ in range(50)]
        for number in range(20):
            await _send(patient, str(number), first=number)
        await _close(patient)
        return await asyncio.gather(*(follower.task for follower in followers))

    assert patient.run(scenario) == [[str(number) for number in range(20)]] * 50


def test_a_silent_stream_shows_that_it_lives(database_url: str) -> None:
    with logs_on(database_url, pace=PollIntervals(recheck=0.01, heartbeat=0.02)) as logs:

        async def scenario() -> int:
            responses = logs.servicer.FollowLines(following(logs.filter()), None)
            first = await responses.__anext__()
            second = await responses.__anext__()
            await responses.aclose()  # type: ignore[attr-defined]
            return len(first.lines) + len(second.lines)

        assert logs.run(scenario) == 0


def test_lines_that_another_replica_took_are_found(database_url: str) -> None:
    with logs_on(database_url, pace=PollIntervals(recheck=0.01)) as one, logs_on(database_url) as other:
        other.trial, other.experiment = one.trial, one.experiment

        async def scenario() -> list[str]:
            follower = _Follow(one)
            await _send(other, "a")
            await follower.until(1)
            await _close(other)
            return await follower.task

        assert one.run(scenario) == ["a"]


def test_a_stopping_service_says_where_to_go_on(patient: Logs) -> None:
    async def scenario() -> None:
        await _send(patient, "a")
        follower = _Follow(patient)
        await follower.until(1)
        patient.servicer.notifier.close()
        await follower.task

    with pytest.raises(UnavailableError, match="follow on after the last line"):
        patient.run(scenario)


def test_followers_of_a_deleted_trial_end(patient: Logs) -> None:
    patient.send("a")
    patient.delete()
    assert patient.run(lambda: _whole(patient)) == []


def test_a_negative_position_is_refused(patient: Logs) -> None:
    with pytest.raises(InvalidArgumentError, match="after_line_id is -1"):
        patient.run(lambda: _whole(patient, after=-1))


def test_several_logs_are_followed_in_one_stream_each_from_its_cursor(patient: Logs) -> None:
    other = patient.anew()
    patient.send("a", "b")
    other.send("x", "y", "z")
    request = following(patient.filter(), other.filter(text="z"))
    request.subscriptions[0].after_line_id = patient.pages()[0][0].line_id
    found: dict[str, list[str]] = {"0": [], "1": []}
    ended: list[str] = []

    async def collect(arrived: asyncio.Event) -> None:
        async for response in patient.servicer.FollowLines(request, None):
            assert response.key not in ended
            found[response.key] += [one.message for one in response.lines]
            ended.extend([response.key] * response.complete)
            arrived.set()

    async def scenario() -> None:
        arrived = asyncio.Event()
        following_both = asyncio.create_task(collect(arrived))
        while not (found["0"] and found["1"]):
            await arrived.wait()
            arrived.clear()
        await _send(patient, "c", first=2)
        await _close(patient)
        while not ended:
            await arrived.wait()
            arrived.clear()
        # A log that is complete no longer says anything; the other continues.
        await _send(patient, "d", first=3)
        await _send(patient, "zz", first=3, trial=other.trial, experiment=other.experiment)
        await patient.servicer.CloseTrialLogs(api.CloseTrialLogsRequest(trial_id=other.trial), None)
        await following_both

    patient.run(scenario)
    assert found == {"0": ["b", "c"], "1": ["z", "zz"]}
    assert ended == ["0", "1"]


def test_the_cursor_passes_lines_that_do_not_match_so_that_nobody_reads_them_again(patient: Logs) -> None:
    patient.send("a", "needle", *("hay" for _ in range(50)))
    patient.close_trial()
    last = patient.pages(descending=True)[0][0].line_id

    async def cursors() -> list[int]:
        request = following(patient.filter(text="needle"))
        return [response.cursor async for response in patient.servicer.FollowLines(request, None)]

    assert patient.run(cursors)[-1] == last


def test_a_small_log_is_not_held_up_by_a_long_one(patient: Logs) -> None:
    short = patient.anew()
    patient.send(*(str(number) for number in range(5000)))
    short.send("a")
    patient.close_trial()
    short.close_trial()

    async def keys() -> list[str]:
        request = following(patient.filter(), short.filter())
        return [response.key async for response in patient.servicer.FollowLines(request, None)]

    assert patient.run(keys)[:2] == ["0", "1"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], "there are 0 subscriptions"),
        ([str(number) for number in range(501)], "there are 501 subscriptions"),
        (["a", "a"], "'a' comes twice"),
        ([""], "1 to 200 characters"),
        (["x" * 201], "1 to 200 characters"),
    ],
)
def test_wrong_subscriptions_are_refused(patient: Logs, keys: list[str], message: str) -> None:
    request = api.FollowLinesRequest()
    for key in keys:
        request.subscriptions.add(key=key, filter=patient.filter())

    async def follow() -> None:
        async for _ in patient.servicer.FollowLines(request, None):
            pass

    with pytest.raises(InvalidArgumentError, match=message):
        patient.run(follow)


def test_followers_of_one_log_share_its_reads(patient: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[object] = []
    read = patient.database.read

    async def noted(work: Any) -> Any:
        reads.append(work)
        return await read(work)

    monkeypatch.setattr(patient.database, "read", noted)
    texts = [f"{number} {'x' * 1000}" for number in range(1000)]

    async def scenario() -> list[list[str]]:
        await _send(patient, *texts)
        followers = [_Follow(patient) for _ in range(30)]
        for follower in followers:
            await follower.until(len(texts))
        await _send(patient, "last", first=len(texts))
        await _close(patient)
        return [await follower.task for follower in followers]

    assert patient.run(scenario) == [[*texts, "last"]] * 30
    # One alone reads sixteen pages of 64 KiB, looks at what came, and at the end.
    assert 16 <= len(reads) <= 45

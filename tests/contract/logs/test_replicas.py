"""Several replicas on one database: every line once, and none missed by those who follow."""

from __future__ import annotations

import asyncio

from support.services.logs import Logs, following, logs_on

from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.errors import ConflictError, FailedPreconditionError, UnavailableError
from resolute_serving.following import PollIntervals

LINES = 90
SOURCES = ("a", "b")


async def _send_all(service: Logs, source: str) -> None:
    texts = [f"{source}{number}" for number in range(LINES)]
    first = 0
    while first < LINES:
        request = service.request(texts[first : first + 4], first=first, source=source)
        try:
            first = (await service.servicer.IngestLines(request, None)).next_sequence
        except FailedPreconditionError as gap:
            first = int(gap.metadata["expected_sequence"])
        except (ConflictError, UnavailableError):
            continue


async def _follow(service: Logs) -> list[str]:
    request = following(service.filter())
    return [line.message async for page in service.servicer.FollowLines(request, None) for line in page.lines]


def test_replicas_that_get_the_same_batches_keep_each_line_once_and_in_order(database_url: str) -> None:
    with logs_on(database_url, pace=PollIntervals(recheck=0.005)) as one, logs_on(database_url) as other:
        other.trial, other.experiment = one.trial, one.experiment

        async def scenario() -> list[str]:
            follower = asyncio.create_task(_follow(one))
            await asyncio.gather(
                *(_send_all(replica, source) for replica in (one, other) for source in SOURCES)
            )
            closing = api.CloseTrialLogsRequest(trial_id=one.trial)
            await other.servicer.CloseTrialLogs(closing, None)
            return await follower

        followed = one.run(scenario)
        assert followed == one.messages(page_size=1000)
        for source in SOURCES:
            own = [text for text in followed if text.startswith(source)]
            assert own == [f"{source}{number}" for number in range(LINES)]

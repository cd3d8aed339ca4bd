"""Several replicas on one database, and several callers of one: every report counts once."""

from __future__ import annotations

import asyncio

from support.services.metrics import Metrics, Report, blocks_of, metrics_on

from resolute.errors import ConflictError, FailedPreconditionError, UnavailableError

STEPS = 60
SOURCES = ("rank0", "rank1", "rank2")


def _reports(source: str) -> list[Report]:
    return [
        ("validation", step, {f"{source}.loss": float(step), "accuracy": step / 100}) for step in range(STEPS)
    ]


async def _send_all(service: Metrics, source: str) -> None:
    """Sends a source's reports in order, three at a time, as a sender that does not know of the others."""
    reports = _reports(source)
    first = 0
    while first < STEPS:
        batch = blocks_of(reports[first : first + 3], first=first)
        try:
            request = service.request(batch, first=first, source=source)
            first = (await service.servicer.IngestReports(request, None)).next_sequence
        except FailedPreconditionError as gap:
            first = int(gap.metadata["expected_sequence"])
        except (ConflictError, UnavailableError):
            continue


def test_replicas_that_get_the_same_batches_keep_each_report_once(database_url: str) -> None:
    with metrics_on(database_url) as one, metrics_on(database_url) as other:
        other.trial, other.experiment = one.trial, one.experiment

        async def scenario() -> None:
            senders = (_send_all(replica, source) for replica in (one, other) for source in SOURCES)
            await asyncio.wait_for(asyncio.gather(*senders), 60)

        asyncio.run(scenario())
        for source in SOURCES:
            points = one.points(f"{source}.loss", group="validation")
            assert points == [(step, float(step)) for step in range(STEPS)]
            assert one.summaries()["validation", f"{source}.loss"].count == STEPS
        assert one.points("accuracy", group="validation") == [(step, step / 100) for step in range(STEPS)]
        assert one.best().experiment_best.steps == STEPS - 1


def test_many_callers_share_commits_and_each_gets_its_own_answer(metrics: Metrics) -> None:
    async def scenario() -> list[int]:
        requests = [
            metrics.request(
                blocks_of([("training", number, {"loss": 1.0})]), source=f"s{number}", first=number % 2
            )
            for number in range(40)
        ]
        for request in requests[1::2]:
            request.blocks[0].sequences[0] = 1
        answers = await asyncio.gather(
            *(metrics.servicer.IngestReports(request, None) for request in requests), return_exceptions=True
        )
        assert all(isinstance(answer, FailedPreconditionError) for answer in answers[1::2])
        return [answer.next_sequence for answer in answers[::2] if not isinstance(answer, BaseException)]

    assert asyncio.run(scenario()) == [1] * 20
    assert [step for step, _ in metrics.points("loss")] == list(range(0, 40, 2))

"""Media from the call of a script to the request of its sender."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.services.stand_ins.spool_receiver import Clock, pump_all

from resolute import errors
from resolute.api.checkpoints.v1 import media_pb2
from resolute.api.checkpoints.v1 import media_service_pb2 as api
from resolute.contracts.spool.format import MAX_MEDIA_BYTES, MEDIA_SUFFIX, METRICS_SUFFIX, Media
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import MediaDelivery
from resolute.spool.omissions import CountedWarnings
from resolute.spool.report_writer import ReportWriter, refusals_of

IDENTITY = RunIdentity("trial", 2, "experiment", storage={"directory": {"path": "/data"}})


class Service:
    """Takes media by the rules of the contract, and fails when told to."""

    def __init__(self) -> None:
        self.next = 0
        self.taken: list[api.IngestMediaRequest.LoggedMedia] = []
        self.requests: list[api.IngestMediaRequest] = []
        self.failures: list[Exception] = []
        self.dropped: list[tuple[int, str]] = []

    def ingest(self, request: api.IngestMediaRequest) -> api.IngestMediaResponse:
        if self.failures:
            raise self.failures.pop()
        self.requests.append(request)
        assert request.first_sequence <= self.next
        self.taken += request.media[self.next - request.first_sequence :]
        self.next = max(self.next, request.first_sequence + request.count)
        refusals = [
            api.IngestMediaResponse.Refusal(sequence=sequence, message="it is bad; draw it better")
            for sequence, logged in enumerate(request.media, request.first_sequence)
            if logged.name == "bad"
        ]
        dropped = api.DroppedMedia(count=1, explanation="one was dropped") if self.next > 2 else None
        return api.IngestMediaResponse(next_sequence=self.next, refusals=refusals, dropped=dropped)

    def delivery(self) -> MediaDelivery:
        return MediaDelivery(
            IDENTITY, ingest=self.ingest, dropped=lambda count, text: self.dropped.append((count, text))
        )


def media(name: str, *, size: int = 10) -> Media:
    return Media(name=name, kind="image", steps=7, time=12.5, content=b"x" * size, caption="c")


def test_media_arrive_as_they_were_logged_beside_reports(tmp_path: Path) -> None:
    writer, service, clock = ReportWriter(tmp_path), Service(), Clock()
    assert not list(tmp_path.glob(f"*{MEDIA_SUFFIX}")), "a run without media has no spool for them"
    writer.report("training", 1, {"loss": 1.0})
    writer.log_media(media("größe", size=MAX_MEDIA_BYTES))
    writer.log_media(media("small"))
    sender = SpoolSender(tmp_path, service.delivery(), clock=clock, jitter=lambda: 0.5)
    pump_all(sender, clock)
    assert [(one.name, len(one.content)) for one in service.taken] == [
        ("größe", MAX_MEDIA_BYTES),
        ("small", 10),
    ]
    small = service.taken[1]
    assert (small.kind, small.steps_completed, small.caption) == (media_pb2.MEDIA_KIND_IMAGE, 7, "c")
    assert (small.log_time.seconds, small.log_time.nanos) == (12, 500_000_000)
    request = service.requests[0]
    assert (request.trial_id, request.run, request.experiment_id) == ("trial", 2, "experiment")
    assert request.storage.directory.path == "/data"
    assert all(request.ByteSize() < 4 << 20 for request in service.requests), "each fits into a message"
    writer.close()
    pump_all(sender, clock)
    assert not list(tmp_path.glob(f"*{MEDIA_SUFFIX}")), "what has arrived is removed"
    assert list(tmp_path.glob(f"*{METRICS_SUFFIX}")), "reports are another sender's"
    sender.close()


def test_what_a_service_refuses_is_told_and_the_rest_arrives(tmp_path: Path) -> None:
    writer, service, clock = ReportWriter(tmp_path), Service(), Clock()
    for name in ("a", "bad", "b"):
        writer.log_media(media(name))
    service.failures = [errors.UnavailableError("away"), errors.FailedPreconditionError("the disk is full")]
    sender = SpoolSender(tmp_path, service.delivery(), clock=clock, jitter=lambda: 0.5)
    pump_all(sender, clock)
    sender.close()
    assert [one.name for one in service.taken] == ["a", "bad", "b"]
    assert list(refusals_of(tmp_path)) == ["it is bad; draw it better"]
    assert service.dropped == [(1, "one was dropped")]


def test_a_record_that_fits_into_no_message_is_left_out_and_holds_up_none(tmp_path: Path) -> None:
    writer, service, clock = ReportWriter(tmp_path), Service(), Clock()
    for name in ("first", "half \ud800", "last"):
        writer.log_media(Media(name, "text", 1, 1.0, b"hello"))
    pump_all(SpoolSender(tmp_path, service.delivery(), clock=clock), clock)
    assert [logged.name for logged in service.taken] == ["first", "last"]
    (refusal,) = refusals_of(tmp_path)
    assert refusal.startswith("a record cannot be sent (")


def test_media_beyond_what_may_wait_are_left_out_and_counted(tmp_path: Path) -> None:
    lines: list[str] = []
    writer = ReportWriter(tmp_path, limit=25, omissions=CountedWarnings(lines.append))
    # What is waiting is counted with its head; the content decides.
    writer.log_media(media("a"))
    writer.log_media(media("b"))
    writer.log_media(media("c"))
    writer.close()
    assert "more than 25 bytes of media have not arrived" in lines[0]
    assert lines[1] == "1 more left out of the reports: media while too many have not arrived"
    service, clock = Service(), Clock()
    sender = SpoolSender(tmp_path, service.delivery(), clock=clock, jitter=lambda: 0.5)
    pump_all(sender, clock)
    sender.close()
    assert [one.name for one in service.taken] == ["a"]


@pytest.mark.parametrize("before", [0, 1])
def test_media_after_the_end_are_left_out(tmp_path: Path, before: int) -> None:
    lines: list[str] = []
    writer = ReportWriter(tmp_path, omissions=CountedWarnings(lines.append))
    for _ in range(before):
        writer.log_media(media("a"))
    writer.close()
    writer.log_media(media("b"))
    assert "after the context was closed" in lines[0]
    assert len(list(tmp_path.glob(f"*{MEDIA_SUFFIX}"))) == before


def test_where_no_storage_is_known_none_is_named(tmp_path: Path) -> None:
    writer, service, clock = ReportWriter(tmp_path), Service(), Clock()
    writer.log_media(media("a"))
    delivery = MediaDelivery(
        RunIdentity("trial", 1, "experiment"), ingest=service.ingest, dropped=lambda _count, _text: None
    )
    sender = SpoolSender(tmp_path, delivery, clock=clock, jitter=lambda: 0.5)
    pump_all(sender, clock)
    sender.close()
    writer.close()
    assert [request.HasField("storage") for request in service.requests] == [False]

"""The thread of a sender: it drains, gives up in time, and reports a defect."""

import threading
from pathlib import Path

from support.services.stand_ins.spool_receiver import IDENTITY, Clock, Receiver, pump_all, sender_to, take_all

from resolute import errors
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.contracts.spool.ack import AckFile
from resolute.spool.delivery.sender import STUCK_AFTER_FAILURES, SpoolSender
from resolute.spool.delivery.sender_thread import SenderThread
from resolute.spool.delivery.services import ReportDelivery
from resolute.spool.doorbell import Doorbell, ring
from resolute.spool.report_writer import ReportWriter


def test_a_thread_drains_what_is_there(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    thread = SenderThread(sender_to(receiver, tmp_path, clock), name="test-sender", idle_seconds=0.01)
    thread.start()
    for step in range(1000):
        writer.report("training", step, {"loss": 1.0})
    assert thread.drain(timeout=60)
    assert len(receiver.all_rows()) == 1000
    thread.stop()


def test_a_thread_says_when_it_could_not_drain_in_time(tmp_path: Path) -> None:
    writer, receiver = ReportWriter(tmp_path), Receiver()
    receiver.fail_before = lambda: errors.UnavailableError("away")
    thread = SenderThread(sender_to(receiver, tmp_path, Clock()), name="test-sender", idle_seconds=0.01)
    thread.start()
    writer.report("training", 1, {"loss": 1.0})
    assert not thread.drain(timeout=0.2)
    thread.stop()
    assert AckFile.of(writer.path).offset < writer.path.stat().st_size


def test_a_thread_that_is_told_to_try_at_once_ends_the_pause_after_a_failure(tmp_path: Path) -> None:
    writer, receiver, failed = ReportWriter(tmp_path), Receiver(), threading.Event()

    def fail() -> Exception:
        failed.set()
        return errors.UnavailableError("away")

    receiver.fail_before = fail
    # Its clock stands still: by itself the pause after a failure never ends.
    thread = SenderThread(sender_to(receiver, tmp_path, Clock()), name="test-sender", idle_seconds=0.01)
    thread.start()
    writer.report("training", 1, {"loss": 1.0})
    assert failed.wait(60)
    receiver.fail_before = lambda: None
    assert not thread.drain(timeout=0.2)
    thread.try_at_once()
    assert thread.drain(timeout=60)
    thread.stop()


def test_a_spool_that_meets_a_defect_does_not_hold_up_the_others(tmp_path: Path) -> None:
    bad, good = ReportWriter(tmp_path, name="bad"), ReportWriter(tmp_path, name="good")
    receiver, clock = Receiver(), Clock()
    broken = ["bad"]

    def ingest(request: metrics.IngestReportsRequest) -> metrics.IngestReportsResponse:
        if any(request.source.startswith(name) for name in broken):
            raise errors.InternalError("a defect")
        return receiver.ingest(request)

    delivery = ReportDelivery(IDENTITY, ingest=ingest, validate=take_all)
    sender = SpoolSender(tmp_path, delivery, clock=clock, jitter=lambda: 0.5)
    bad.report("training", 1, {"loss": 1.0})
    good.report("training", 2, {"loss": 2.0})
    stuck = []
    for _ in range(STUCK_AFTER_FAILURES):
        sender.pump()
        clock.now += 60.0
        stuck.append(sender.stuck)
    assert stuck == [False] * (STUCK_AFTER_FAILURES - 1) + [True]
    assert [row[1] for row in receiver.all_rows()] == [2]

    broken.clear()
    clock.now += 600.0
    pump_all(sender, clock)
    assert not sender.stuck
    assert sorted(row[1] for row in receiver.all_rows()) == [1, 2]


def test_a_thread_knows_when_to_wait_is_in_vain(tmp_path: Path) -> None:
    class Broken(SpoolSender):
        def pump(self) -> bool:
            raise RuntimeError("a defect of the sender itself")

    delivery = ReportDelivery(IDENTITY, ingest=Receiver().ingest, validate=take_all)
    thread = SenderThread(Broken(tmp_path, delivery), name="test-sender", idle_seconds=0.001)
    thread.start()
    assert not thread.drain(timeout=3600.0)
    assert thread.stuck
    thread.stop()


def test_who_waits_for_reports_wakes_the_sender(tmp_path: Path) -> None:
    """A commit waits for its reports: not until a sleeping sender looks by itself."""
    writer, receiver, doorbell = ReportWriter(tmp_path), Receiver(), Doorbell(tmp_path)
    sender = sender_to(receiver, tmp_path, Clock())
    thread = SenderThread(sender, name="test-sender", idle_seconds=3600.0, wake=doorbell)
    thread.start()
    for step in range(3):
        writer.report("validation", step, {"loss": 1.0})
        writer.flush(timeout=60)
        assert len(receiver.all_rows()) == step + 1
    thread.stop()
    doorbell.close()


def test_a_doorbell_works_within_a_process_where_there_can_be_no_named_pipe(tmp_path: Path) -> None:
    doorbell = Doorbell(tmp_path / "absent")
    assert not doorbell.wait(0.0)
    doorbell.set()
    assert doorbell.wait(60.0)
    doorbell.clear()
    assert not doorbell.wait(0.0)
    doorbell.close()
    doorbell.set()  # nobody listens, and nothing fails


def test_ringing_where_nobody_listens_does_nothing(tmp_path: Path) -> None:
    ring(tmp_path)
    Doorbell(tmp_path).close()
    ring(tmp_path)

"""Spools and shared memory on a full disk: failures are errors, and nothing leaks."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clocks import ManualClock
from support.file_systems import small_file_system

from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.contracts.files.mapped_file import map_file
from resolute.contracts.run.shared_memory.flags import FLAGS_SIZE, Flags
from resolute.contracts.spool.ack import AckFile
from resolute.contracts.spool.format import Media, Report, encode_report, frame
from resolute.errors import QuotaError
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import ReportDelivery
from resolute.spool.reader import SpoolReader
from resolute.spool.report_writer import ReportWriter

_PAGE = 4096


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_file_system(tmp_path / "disk", "64k") as path:
        yield path


def fill(disk: Path, *, spare: int = 0) -> Path:
    """Fills a disk but for some pages."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(_PAGE)) == _PAGE:
                pass
        file.truncate(max(file.tell() - spare * _PAGE, 0))
    return filler


def run_script(script: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script in a process of its own, which may be killed by SIGBUS."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, check=False
    )


_READ_ACK = """
import sys
from pathlib import Path
from resolute.contracts.spool.ack import AckFile
from resolute.errors import QuotaError
try:
    print(AckFile.of(Path(sys.argv[1])).offset)
except QuotaError:
    print("full")
"""
_READ_FLAGS = """
import sys
from pathlib import Path
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.errors import QuotaError
try:
    print(Flags.create(Path(sys.argv[1])).preempt)
except QuotaError:
    print("full")
"""


def test_an_acknowledgement_on_a_full_disk_is_an_error_instead_of_a_signal(disk: Path) -> None:
    fill(disk)
    done = run_script(_READ_ACK, disk / "rank0-0001.metrics")
    assert (done.returncode, done.stdout.strip()) == (0, "full"), done.stderr


def test_flags_on_a_full_disk_are_an_error_instead_of_a_signal(disk: Path) -> None:
    fill(disk)
    done = run_script(_READ_FLAGS, disk / "flags")
    assert (done.returncode, done.stdout.strip()) == (0, "full"), done.stderr


def test_what_was_created_before_the_disk_was_full_stays_usable(disk: Path) -> None:
    ack, flags = AckFile.of(disk / "rank0-0001.metrics"), Flags.create(disk / "flags")
    fill(disk)
    done = run_script(
        _READ_ACK + _READ_FLAGS.replace("[1]", "[2]"),
        disk / "rank0-0001.metrics",
        disk / "flags",
    )
    assert done.stdout.split() == ["0", "False"], done.stderr
    ack.advance(7)
    flags.acknowledge()
    assert AckFile.of(disk / "rank0-0001.metrics").offset == 7
    assert Flags(disk / "flags").acknowledged


def test_a_sparse_file_of_an_earlier_release_gets_its_blocks(disk: Path) -> None:
    path = disk / "flags"
    path.touch()
    os.truncate(path, FLAGS_SIZE)
    Flags(path).close()
    assert path.stat().st_blocks > 0


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL])
def test_zeros_are_written_where_blocks_cannot_be_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", unsupported)
    path = tmp_path / "file"
    path.write_bytes(b"kept")
    mapped = map_file(path, _PAGE, create=False)
    assert (mapped[:4], mapped[4:]) == (b"kept", bytes(_PAGE - 4))
    assert path.stat().st_blocks * 512 >= _PAGE


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("spare", [0, 1, 2, 3])
def test_rotation_on_a_full_disk_leaks_neither_files_nor_descriptors(disk: Path, spare: int) -> None:
    writer = ReportWriter(disk, segment_bytes=_PAGE)
    steps = 0
    while writer.unacknowledged < _PAGE - 200:
        writer.report("training", steps, {"loss": 0.5})
        steps += 1
    filler = fill(disk, spare=spare)
    files, open_before = sorted(disk.iterdir()), descriptors()

    refused = 0
    for _ in range(200):
        try:
            writer.report("training", steps, {"loss": 0.5})
        except QuotaError:
            refused += 1
        else:
            steps += 1

    assert refused > 50
    # A rotation that succeeds before the disk is full adds a spool and its acknowledgement, which stays open.
    assert len(sorted(disk.iterdir())) - len(files) in {0, 2}
    assert descriptors() <= open_before + 1

    filler.unlink()
    for _ in range(200):
        writer.report("training", steps, {"loss": 0.5})
        steps += 1
    writer.close()
    found: list[int] = []
    for path in sorted(disk.glob(writer.pattern)):
        reader = SpoolReader(path)
        chunk = reader.peek()
        assert chunk.complete, "every file ends with an END record"
        found += [record.steps for record in chunk.records() if not hasattr(record, "text")]
        reader.close()
    assert found == list(range(steps))


def test_a_spool_whose_acknowledgement_finds_no_space_does_not_hold_up_the_others(disk: Path) -> None:
    writers = [ReportWriter(disk, name=name) for name in ("early", "other")]
    for step, writer in enumerate(writers):
        writer.report("training", step, {"loss": 0.5})
    # A release that reserved no space for it may have left it missing.
    AckFile.path_for(writers[0].path).unlink()
    filler = fill(disk)
    arrived: list[str] = []

    def ingest(request: metrics.IngestReportsRequest) -> metrics.IngestReportsResponse:
        arrived.append(request.source)
        return metrics.IngestReportsResponse(next_sequence=request.first_sequence + request.count)

    identity = RunIdentity("trial", 1, "experiment")
    sender = SpoolSender(
        disk, ReportDelivery(identity, ingest=ingest, validate=lambda _: searcher.ReportValidationsResponse())
    )
    open_before = descriptors()
    for _ in range(20):
        sender.pump()
    assert arrived == [writers[1].path.stem]
    assert not sender.drained()
    assert descriptors() <= open_before + 2

    filler.unlink()
    sender.pump()
    assert arrived == [writer.path.stem for writer in reversed(writers)]
    assert sender.drained()
    sender.close()


def test_a_training_that_is_done_does_not_fail_because_its_disk_is_full(disk: Path) -> None:
    writer = ReportWriter(disk, clock=ManualClock(1.0))
    writer.log_media(Media("said", "text", 1, 1.0, b"hello"))
    # Not even the END record has room in the last page.
    shortest = len(frame(encode_report(Report("training", 1, writer._clock.time(), {"said": ""}))))
    left = -(writer.path.stat().st_size + shortest) % _PAGE
    writer.report("training", 1, {"said": "x" * left})
    assert writer.path.stat().st_size % _PAGE == 0
    filler = fill(disk)
    writer.close()
    filler.unlink()
    arrived: list[int] = []

    def ingest(request: metrics.IngestReportsRequest) -> metrics.IngestReportsResponse:
        arrived.append(request.count)
        return metrics.IngestReportsResponse(next_sequence=request.first_sequence + request.count)

    delivery = ReportDelivery(
        RunIdentity("trial", 1, "experiment"),
        ingest=ingest,
        validate=lambda _: searcher.ReportValidationsResponse(),
    )
    sender = SpoolSender(disk, delivery)
    while sender.pump():
        pass
    assert arrived == [1]
    assert sender.drained()
    sender.close()

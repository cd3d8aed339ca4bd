"""Spools as files: what is written is read, whatever happens to the end."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolute.contracts.spool.ack import AckFile
from resolute.contracts.spool.format import FILE_HEADER, Line, Report, Row, Stdtype
from resolute.errors import DataLossError, InvalidArgumentError, QuotaError
from resolute.spool.line_splitter import MAX_LINE
from resolute.spool.line_writer import LineWriter
from resolute.spool.reader import Record, SpoolReader
from resolute.spool.report_writer import ReportWriter


def read_all(path: Path) -> list[Record]:
    reader = SpoolReader(path)
    records: list[Record] = []
    while (chunk := reader.peek()).end > reader.offset:
        records += chunk.records()
        reader.take(chunk)
    reader.close()
    return records


def test_reports_come_back_as_they_were_made(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    writer.report("training", 1, {"loss": 0.5, "count": 3})
    writer.report("training", 2, {"loss": float("nan"), "count": 4})
    writer.report("validation", 2, {"accuracy": 0.25, "note": "fine", "nested": {"a": None, "big": 2**60}})
    writer.close()

    first, second, third = read_all(writer.path)

    assert isinstance(first, Row)
    assert (first.schema.group, first.schema.names, first.steps) == ("training", ("loss", "count"), 1)
    assert first.values == (0.5, 3.0)
    assert isinstance(second, Row)
    assert second.schema is first.schema
    assert second.values[0] != second.values[0]
    assert isinstance(third, Report)
    assert third.values == {"accuracy": 0.25, "note": "fine", "nested.a": None, "nested.big": 2**60}


def test_a_torn_end_is_not_read(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    for step in range(5):
        writer.report("training", step, {"loss": 1.0})
    whole = writer.path.read_bytes()
    for cut in range(len(whole) - 36, len(whole)):
        torn = tmp_path / "torn.metrics"
        torn.write_bytes(whole[:cut])
        assert [row.steps for row in read_all(torn) if isinstance(row, Row)] == [0, 1, 2, 3]


def test_a_damaged_record_ends_what_can_be_read(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    for step in range(5):
        writer.report("training", step, {"loss": 1.0})
    damaged = bytearray(writer.path.read_bytes())
    damaged[-60] ^= 1
    path = tmp_path / "damaged.metrics"
    path.write_bytes(damaged)

    assert len(read_all(path)) < 5


def test_a_reader_sees_records_as_they_are_written(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    reader = SpoolReader(writer.path)
    assert not len(reader.peek())
    for step in range(3):
        writer.report("training", step, {"loss": float(step)})
        chunk = reader.peek()
        assert [record.steps for record in chunk.records() if isinstance(record, Row)] == [step]
        assert chunk.first_sequence == step
        reader.take(chunk)


def test_a_reader_goes_to_any_sequence_and_back(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    for step in range(100):
        writer.report("training", step, {f"metric{step % 3}": 1.0})
    reader = SpoolReader(writer.path)

    reader.skip_to(sequence=42)
    (record, *_), sequence = reader.peek().records(), reader.peek().first_sequence
    reader.rewind()

    assert isinstance(record, Row)
    assert (record.steps, sequence) == (42, 42)
    assert reader.peek().first_sequence == 0


def test_a_reader_goes_on_from_an_offset(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    for step in range(100):
        writer.report("training", step, {"loss": 1.0})
    first = SpoolReader(writer.path)
    chunk = first.peek()
    first.take(chunk, 30)

    second = SpoolReader(writer.path)
    second.skip_to(offset=first.offset)

    assert (second.offset, second.sequence) == (first.offset, 30)


def test_one_record_comes_whole_however_few_bytes_are_asked_for(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    writer.report("training", 1, {"text": "x" * 100_000})
    assert len(SpoolReader(writer.path).peek(64)) == 1


def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path, segment_bytes=2000)
    for step in range(100):
        writer.report("training", step, {"loss": 1.0, "accuracy": 0.5})
    writer.close()

    files = sorted(tmp_path.glob(writer.pattern))
    assert len(files) > 2
    records = [record for path in files for record in read_all(path)]
    assert [record.steps for record in records if isinstance(record, Row)] == list(range(100))
    assert {record.schema.names for record in records if isinstance(record, Row)} == {("loss", "accuracy")}


def test_only_finished_files_say_that_they_are_complete(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    writer.report("training", 1, {"loss": 1.0})
    assert not SpoolReader(writer.path).peek().complete
    writer.close()
    assert SpoolReader(writer.path).peek().complete


def test_a_strange_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "strange.metrics"
    path.write_bytes(b"something else entirely")
    with pytest.raises(DataLossError, match=r"strange\.metrics is not a spool"):
        SpoolReader(path).peek()


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "newer.metrics"
    path.write_bytes(FILE_HEADER.pack(b"RSLSPOOL", 9, 0))
    with pytest.raises(DataLossError, match=r"version 9; this release reads version 1"):
        SpoolReader(path).peek()


def test_a_report_that_fits_into_no_message_is_refused(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    with pytest.raises(InvalidArgumentError, match="put large data into a checkpoint"):
        writer.append(b"x" * (3 << 20))
    writer.report("training", 2, {"loss": 1.0})
    assert len(read_all(writer.path)) == 1


def test_a_full_disk_leaves_whole_records_and_says_so(tmp_path: Path) -> None:
    """The limit on file sizes stands in for the disk: a short write, then an error, as on a full one."""
    script = """
import resource, sys
from pathlib import Path
from resolute.errors import QuotaError
from resolute.spool.report_writer import ReportWriter
writer = ReportWriter(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
taken = 0
try:
    while True:
        writer.report("training", taken, {"loss": 1.0, "accuracy": 0.5})
        taken += 1
except QuotaError as failure:
    print(taken, failure)
"""
    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    taken, message = result.stdout.split(" ", 1)
    (path,) = tmp_path.glob("*.metrics")
    assert len(read_all(path)) == int(taken)
    assert "free some space" in message
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_what_was_reported_survives_the_end_of_the_process(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from resolute.spool.report_writer import ReportWriter
writer = ReportWriter(Path(sys.argv[1]))
for step in range(1000):
    writer.report("training", step, {"loss": 1.0})
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    (path,) = tmp_path.glob("*.metrics")
    assert len(read_all(path)) == 1000


def test_the_acknowledgement_only_moves_forward(tmp_path: Path) -> None:
    spool = tmp_path / "rank0-1-a-0001.metrics"
    ack = AckFile.of(spool)
    ack.advance(100)
    ack.advance(50)
    assert AckFile.of(spool).offset == AckFile.read_offset(spool) == 100


@pytest.mark.parametrize("content", [None, b"", b"1234567"])
def test_nothing_of_a_spool_has_arrived_whose_acknowledgement_is_not_there(
    tmp_path: Path, content: bytes | None
) -> None:
    spool = tmp_path / "rank0-1-a-0001.metrics"
    if content is not None:
        AckFile.path_for(spool).write_bytes(content)
    assert AckFile.read_offset(spool) == 0
    assert AckFile.path_for(spool).exists() == (content is not None), "it is read, not made"


def test_long_lines_are_split_and_none_is_lost(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path)
    writer.append_lines(
        [Line(1.0, Stdtype.STDOUT, b"x" * (2 * MAX_LINE + 5)), Line(2.0, Stdtype.STDERR, b"")]
    )
    lines = [line for line in read_all(writer.path) if isinstance(line, Line)]
    assert [len(line.text) for line in lines] == [MAX_LINE, MAX_LINE, 5, 0]
    assert lines[3].stdtype is Stdtype.STDERR


def test_lines_beyond_the_limit_are_dropped_and_a_line_says_how_many(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path, limit=1000)
    line = Line(1.0, Stdtype.STDOUT, b"x" * 100)
    for _ in range(30):
        writer.append_lines([line])
    assert writer.dropped > 10
    AckFile.of(writer.path).advance(writer.path.stat().st_size)
    writer.append_lines([line])

    *_, marker, last = read_all(writer.path)

    assert isinstance(marker, Line)
    assert marker.stdtype is Stdtype.PLATFORM
    assert b"lines were dropped here" in marker.text
    assert last == line


def test_lines_that_a_full_disk_took_away_are_counted_where_they_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LineWriter(tmp_path)
    line = Line(1.0, Stdtype.STDOUT, b"x")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        for count in (2, 1):
            with pytest.raises(QuotaError):
                writer.append_lines([line] * count)
    writer.append_lines([line])
    marker, last = read_all(writer.path)
    assert isinstance(marker, Line)
    assert marker.text.startswith(b"3 lines were dropped here")
    assert last == line


numbers = st.floats(allow_nan=False) | st.integers(-(2**40), 2**40)
metrics = st.dictionaries(
    st.text(min_size=1, max_size=5), numbers | st.text(max_size=5) | st.none(), max_size=5
)


@settings(max_examples=50)
@given(reports=st.lists(st.tuples(st.sampled_from(["training", "validation"]), metrics), max_size=30))
def test_any_reports_come_back(
    tmp_path_factory: pytest.TempPathFactory, reports: list[tuple[str, dict[str, object]]]
) -> None:
    writer = ReportWriter(tmp_path_factory.mktemp("spool"), segment_bytes=500)
    for step, (group, values) in enumerate(reports):
        writer.report(group, step, values)
    writer.close()

    records = [
        record for path in sorted(writer.path.parent.glob(writer.pattern)) for record in read_all(path)
    ]

    found = []
    for record in records:
        if isinstance(record, Row):
            found.append((record.schema.group, dict(zip(record.schema.names, record.values, strict=True))))
        elif isinstance(record, Report):
            found.append((record.group, dict(record.values)))
    assert found == reports

"""When a script has initialized the Core API is written once, and read whatever is in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute.contracts.run.directory import RunDirectory


def test_the_first_time_stands(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert run.read_ready() == 0.0
    run.write_ready(12.5)
    run.write_ready(99.0)
    assert run.read_ready() == 12.5


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "[" * 100_000,
        *(
            f'{{"time": {time}}}'
            for time in ('"noon"', "null", "Infinity", "NaN", "-1", "1e300", "1" + "0" * 400)
        ),
    ],
    ids=lambda content: content[:20],
)
def test_a_file_that_a_script_has_damaged_counts_for_nothing(tmp_path: Path, content: str) -> None:
    run = RunDirectory(tmp_path)
    run.ready_file.write_text(content)
    assert run.read_ready() == 0.0


def test_a_directory_in_the_place_of_the_file_counts_for_nothing(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.ready_file.mkdir()
    run.write_ready(12.5)
    assert run.read_ready() == 0.0

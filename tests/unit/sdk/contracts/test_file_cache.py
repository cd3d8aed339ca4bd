"""Files that a machine keeps by their digests."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.clocks import ManualClock

from resolute.contracts.files.digests import format_digest, new_hash
from resolute.errors import InvalidArgumentError
from resolute.transfer.cache import DIRECTORY_VARIABLE, LIMIT_VARIABLE, FileCache


class Kept:
    """A cache beside a directory to bring files from."""

    def __init__(self, folder: Path, *, limit: int = 1000) -> None:
        self.clock = ManualClock()
        self.directory = folder / "cache"
        self.cache = FileCache(self.directory, limit=limit, clock=self.clock)
        self._folder = folder

    def keep(self, *contents: bytes) -> None:
        files = []
        for number, content in enumerate(contents):
            source = self._folder / f"source{number}"
            source.write_bytes(content)
            files.append((digest_of(content), source))
        self.clock.advance(1.0)
        self.cache.keep(files)

    def take(self, content: bytes) -> bool:
        target = self._folder / "target"
        self.clock.advance(1.0)
        found = self.cache.take(digest_of(content), target)
        assert not found or target.read_bytes() == content
        return found

    def place(self, content: bytes) -> Path:
        """Where a file is kept."""
        (found,) = self.directory.glob(f"??/*{digest_of(content).partition(':')[2]}")
        return found

    def total(self) -> int:
        return sum(path.stat().st_size for path in self.directory.glob("??/*"))


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def digest_of(content: bytes) -> str:
    summed = new_hash()
    summed.update(content)
    return format_digest(summed)


def test_what_is_kept_is_there_again(kept: Kept) -> None:
    assert not kept.take(b"a")
    kept.keep(b"a", b"", b"large" * 100)
    assert kept.take(b"a")
    assert kept.take(b"")
    assert kept.take(b"large" * 100)
    assert not kept.take(b"b")
    # Others of this machine are not to read what its owner may.
    assert kept.directory.stat().st_mode & 0o777 == 0o700


def test_what_was_not_used_for_longest_makes_room(kept: Kept) -> None:
    first, second, third = (bytes([number]) * 400 for number in range(3))
    kept.keep(first)
    kept.keep(second)
    assert kept.take(first)
    kept.keep(third)
    assert [kept.take(content) for content in (first, second, third)] == [True, False, True]
    kept.keep(b"x" * 1001)
    assert kept.total() == 800


@settings(max_examples=50)
@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(1, 60)), max_size=40),
    limit=st.integers(1, 200),
)
def test_the_bound_is_never_passed_and_what_comes_out_is_what_went_in(
    steps: list[tuple[bool, int, int]], limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = Kept(Path(folder), limit=limit)
        for keeps, kind, size in steps:
            content = bytes([kind]) * size
            if keeps:
                kept.keep(content)
                assert kept.take(content) is (size <= limit)
            else:
                kept.take(content)
            assert kept.total() <= limit


@pytest.mark.parametrize("damage", [b"A", b"aa", b""])
def test_a_damaged_file_is_dropped(kept: Kept, damage: bytes) -> None:
    kept.keep(b"a")
    kept.place(b"a").write_bytes(damage)
    assert not kept.take(b"a")
    assert list(kept.directory.glob("??/*")) == []
    kept.keep(b"a")
    assert kept.take(b"a")


def test_a_directory_in_the_place_of_a_file_is_no_file(kept: Kept) -> None:
    kept.keep(b"a")
    kept.place(b"a").unlink()
    (kept.directory / digest_of(b"a").partition(":")[2][:2] / digest_of(b"a").replace(":", "-")).mkdir()
    assert not kept.take(b"a")


@pytest.mark.parametrize("digest", ["", "blake3:", "blake3:../../../../etc/passwd0000000000000000", "x"])
def test_what_is_no_digest_is_neither_kept_nor_found(kept: Kept, tmp_path: Path, digest: str) -> None:
    (tmp_path / "source").write_bytes(b"a")
    kept.cache.keep([(digest, tmp_path / "source")])
    assert not kept.cache.take(digest, tmp_path / "target")
    assert kept.total() == 0


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    kept = Kept(tmp_path)
    kept.keep(b"a")
    assert "keeps nothing now" in caplog.text
    with kept.cache.fetch_lock("checkpoint"):
        assert not kept.take(b"a")


def test_what_a_killed_process_left_is_swept(kept: Kept) -> None:
    kept.keep(b"a")
    left = kept.directory / "incoming" / "left"
    left.write_bytes(b"half")
    now = kept.clock.time()
    os.utime(left, (now, now))
    kept.keep(b"b")
    assert left.exists()
    kept.clock.advance(90_000.0)
    kept.keep(b"c")
    assert not left.exists()
    assert kept.take(b"a")


def test_those_who_fetch_the_same_take_turns(kept: Kept) -> None:
    order: list[str] = []

    def second() -> None:
        with kept.cache.fetch_lock("checkpoint"):
            order.append("second")

    thread = threading.Thread(target=second)
    with kept.cache.fetch_lock("checkpoint"):
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_machine_has_a_cache_if_its_environment_says_so(tmp_path: Path) -> None:
    assert FileCache.from_environment({}) is None
    found = FileCache.from_environment({DIRECTORY_VARIABLE: str(tmp_path)})
    assert found is not None
    assert found.limit == 100 << 30
    found = FileCache.from_environment({DIRECTORY_VARIABLE: str(tmp_path), LIMIT_VARIABLE: "7"})
    assert found is not None
    assert found.limit == 7


@pytest.mark.parametrize(
    ("directory", "limit", "message"),
    [
        ("relative/path", "", r"CACHE_DIR is 'relative/path'; give the absolute path"),
        ("/a", "0", r"CACHE_BYTES is '0'; give a number of bytes above 0"),
        ("/a", "10GB", r"CACHE_BYTES is '10GB'; give a number of bytes above 0"),
        ("/a", "-1", r"CACHE_BYTES is '-1'"),
    ],
)
def test_wrong_variables_are_named(directory: str, limit: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        FileCache.from_environment({DIRECTORY_VARIABLE: directory, LIMIT_VARIABLE: limit})

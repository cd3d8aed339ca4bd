"""The cache of what startup hooks have installed: its limits, and who may use a layer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.clocks import ManualClock

from resolute.errors import InvalidArgumentError
from resolute_launch.overlays.cache import Claim, LayerCache

DAY = 86_400.0


def no_wait() -> None:
    raise InterruptedError


def go_on() -> None:
    """Lets files be copied."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cache(tmp_path: Path, clock: ManualClock) -> LayerCache:
    return LayerCache(tmp_path / "cache", clock=clock, most_bytes=1000, days=7)


def fill(cache: LayerCache, key: str, source: Path, *, size: int = 100) -> Claim:
    """Fills a layer, and returns the claim of who uses it."""
    source.mkdir(exist_ok=True)
    (source / "file").unlink(missing_ok=True)
    (source / "file").write_bytes(bytes(size))
    claim = cache.claim(key, pause=no_wait)
    assert claim.layer is None
    claim.fill(source, check=go_on)
    return claim


def has(cache: LayerCache, key: str) -> bool:
    claim = cache.claim(key, pause=no_wait)
    claim.close()
    return claim.layer is not None


def test_a_layer_is_found_while_others_use_it_and_stays_as_it_was(cache: LayerCache, tmp_path: Path) -> None:
    first = fill(cache, "a", tmp_path / "overlay")
    second = cache.claim("a", pause=no_wait)
    assert second.layer is not None
    assert second.layer.made_in == tmp_path / "overlay"
    # What replaces a file in the overlay leaves that of the layer alone.
    (tmp_path / "overlay" / "file").unlink()
    (tmp_path / "overlay" / "file").write_text("other")
    assert (second.layer.path / "file").read_bytes() == bytes(100)
    for claim in (first, second):
        claim.close()


def test_one_fills_and_the_others_wait_until_it_has_or_gives_up(cache: LayerCache) -> None:
    first = cache.claim("a", pause=no_wait)
    with pytest.raises(InterruptedError):
        cache.claim("a", pause=no_wait)
    waited = []

    def give_up() -> None:
        waited.append(True)
        first.close()

    second = cache.claim("a", pause=give_up)
    assert waited
    assert second.layer is None
    second.close()


def test_who_waits_for_another_run_does_so_for_two_minutes(cache: LayerCache, clock: ManualClock) -> None:
    first, began = cache.claim("a", pause=no_wait), clock.monotonic()
    second = cache.claim("a", pause=lambda: clock.advance(10))
    assert second.layer is None
    assert 120 < clock.monotonic() - began <= 130
    first.close()


def test_what_was_not_used_for_long_goes_and_what_is_used_stays(
    cache: LayerCache, tmp_path: Path, clock: ManualClock
) -> None:
    fill(cache, "old", tmp_path / "overlay").close()
    used = fill(cache, "used", tmp_path / "overlay")
    clock.advance(8 * DAY)
    fill(cache, "new", tmp_path / "overlay").close()
    assert not has(cache, "old")
    assert has(cache, "used")
    used.close()
    assert has(cache, "new")


def test_those_used_longest_ago_make_room(cache: LayerCache, tmp_path: Path, clock: ManualClock) -> None:
    for key in "abc":
        fill(cache, key, tmp_path / "overlay", size=400).close()
        clock.advance(1)
    assert not has(cache, "a")
    assert has(cache, "b")
    clock.advance(1)
    fill(cache, "d", tmp_path / "overlay", size=400).close()
    assert not has(cache, "c")
    assert has(cache, "b")
    assert not list((tmp_path / "cache").glob("incoming-*"))


def test_what_is_larger_than_the_cache_leaves_an_empty_layer(cache: LayerCache, tmp_path: Path) -> None:
    fill(cache, "a", tmp_path / "overlay", size=1001).close()
    claim = cache.claim("a", pause=no_wait)
    assert claim.layer is not None
    assert [path.name for path in claim.layer.path.iterdir()] == ["layer.json"]
    claim.close()


def test_what_is_too_large_is_copied_no_further_than_the_limit(cache: LayerCache, tmp_path: Path) -> None:
    source = tmp_path / "overlay"
    copied: list[bool] = []
    for number in range(10):
        (source / f"{number}").mkdir(parents=True)
        (source / f"{number}" / "file").write_bytes(bytes(400))
    claim = cache.claim("a", pause=no_wait)
    claim.fill(source, check=lambda: copied.append(True))
    assert len(copied) == 3
    claim.close()
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["a", "a.lock"]


def test_who_is_interrupted_between_two_files_leaves_nothing_and_makes_way(
    cache: LayerCache, tmp_path: Path
) -> None:
    source = tmp_path / "overlay"
    copied: list[Path] = []
    source.mkdir()
    for name in "xyz":
        (source / name).write_text(name)

    def interrupt() -> None:
        copied.extend((tmp_path / "cache").glob("incoming-*/[xyz]"))
        if copied:
            raise InterruptedError

    first = cache.claim("a", pause=no_wait)
    first.fill(source, check=interrupt)
    assert len(copied) == 1
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["a.lock"]
    fill(cache, "a", source).close()
    assert has(cache, "a")


def test_old_locks_of_hooks_that_failed_are_removed_unless_somebody_has_them(
    cache: LayerCache, tmp_path: Path, clock: ManualClock
) -> None:
    cache.claim("failed", pause=no_wait).close()
    held = cache.claim("held", pause=no_wait)
    for lock in (tmp_path / "cache").glob("*.lock"):
        os.utime(lock, (clock.time(), clock.time()))
    cache.claim("a", pause=no_wait).close()
    assert (tmp_path / "cache" / "failed.lock").exists()
    clock.advance(2 * DAY)
    cache.claim("a", pause=no_wait).close()
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["a.lock", "held.lock"]
    held.close()


def test_what_nobody_brings_in_any_more_is_removed(
    cache: LayerCache, tmp_path: Path, clock: ManualClock
) -> None:
    left = tmp_path / "cache" / "incoming-left"
    left.mkdir(parents=True, mode=0o700)
    os.utime(left, (clock.time(), clock.time()))
    assert not has(cache, "a")
    assert left.exists()
    clock.advance(2 * DAY)
    assert not has(cache, "a")
    assert not left.exists()


def test_a_directory_that_others_may_write_to_is_not_used(cache: LayerCache, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    claim = cache.claim("a", pause=no_wait)
    claim.fill(tmp_path, check=go_on)
    assert not list((tmp_path / "cache").iterdir())


def test_limits_come_from_the_environment(tmp_path: Path, clock: ManualClock) -> None:
    none = LayerCache.from_environment(tmp_path / "cache", {"RESOLUTE_HOOK_CACHE_BYTES": "0"}, clock=clock)
    assert none.claim("a", pause=no_wait).layer is None
    assert not (tmp_path / "cache").exists()
    with pytest.raises(
        InvalidArgumentError, match="RESOLUTE_HOOK_CACHE_DAYS is 'a week'; give a whole number"
    ):
        LayerCache.from_environment(tmp_path, {"RESOLUTE_HOOK_CACHE_DAYS": "a week"}, clock=clock)

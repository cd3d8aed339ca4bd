"""What another layout than plain files would save: chunks within large files, packs of small ones.

    python benchmarks/checkpoints/layouts.py [--small N] [--kilobytes N] [--passes N] [--json]

First the checkpoints of real trainings: which share of the bytes of the second and later ones a store has
already, if it knows whole files, as ours, or pieces of them. Then many small files, sent and fetched as they
are beside in packs of 16 MiB, to and from one S3 server on loopback, and what it takes to read one of them.
Decision 0017 rests on the figures; the limits are those at which it would have to be made again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.checkpoints._chunks import FileIndex, cutters
from benchmarks.checkpoints._trainings import TRAININGS, train
from benchmarks.checkpoints.transfers import Ours, world
from benchmarks.standalone import say, seconds

_SIZES = (64 << 10, 1 << 20, 4 << 20)
_PACK_BYTES = 16 << 20
_READS = 20
_MOST_BEYOND_FILES = 0.05
"""Share of the bytes of a training of all weights that pieces may save before they are worth a layout."""
_MOST_PER_FILE = 0.005
"""Seconds that a small file of its own may cost beside one in a pack, up and down, before packs are worth a
layout: the checkpoints of frameworks have some dozens or hundreds of files."""


@dataclass
class Results:
    """Shares by training and way of cutting; seconds by what was done and how."""

    small: int
    shares: dict[str, dict[str, float]] = field(default_factory=dict)
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)

    def beyond_files(self) -> float:
        """The most that pieces save of trainings of all weights."""
        trained = [shares for name, shares in self.shares.items() if name.startswith("all weights")]
        return max(max(shares.values()) - shares["files"] for shares in trained)

    def both_ways(self, how: str) -> float:
        """Seconds up and down."""
        return self.seconds["up"][how] + self.seconds["down"][how]

    def per_file(self) -> float:
        """Seconds that each file costs, up and down, because it is in no pack."""
        return (self.both_ways("plain") - self.both_ways("packed")) / self.small

    def missed(self) -> list[str]:
        missed = []
        if self.beyond_files() > _MOST_BEYOND_FILES:
            missed.append(f"chunks would save {self.beyond_files():.0%} of ordinary trainings")
        if self.per_file() > _MOST_PER_FILE:
            missed.append(f"a small file costs {self.per_file() * 1000:.1f} ms because it is in no pack")
        return missed

    def describe(self) -> list[str]:
        """What a person reads."""
        lines = ["share of the bytes of later checkpoints that need not be sent"]
        for name, shares in self.shares.items():
            lines += [f"  {name}", *(f"    {way:20} {share:7.2%}" for way, share in shares.items())]
        lines.append(f"small files: seconds as they are, in packs of {_PACK_BYTES >> 20} MiB")
        for what, taken in self.seconds.items():
            lines.append(f"  {what:22} {taken['plain']:9.4f} {taken['packed']:9.4f}")
        gain = self.both_ways("plain") / self.both_ways("packed")
        cost = f"a file in no pack costs {self.per_file() * 1000:.2f} ms more"
        return [*lines, f"packs are {gain:.2f} x as fast up and down together; {cost}"]


def shares(folder: Path) -> dict[str, dict[str, float]]:
    """Trains, and cuts what it writes in every way."""
    found: dict[str, dict[str, float]] = {}
    for number, name in enumerate(TRAININGS):
        stores = {way: FileIndex(cut) for way, cut in cutters(_SIZES).items()}
        place = folder / f"training-{number}"
        place.mkdir()
        for epoch, checkpoint in enumerate(train(name, place)):
            for store in stores.values():
                store.take(checkpoint, first=epoch == 0)
        found[name] = {way: store.share for way, store in stores.items()}
    return found


def packs(folder: Path, *, small: int, size: int, passes: int) -> dict[str, dict[str, float]]:
    """Sends and fetches small files as they are and in packs, the best of some passes each."""
    source, packed, target = folder / "source", folder / "packed", folder / "target"
    for place in (source, packed, target):
        place.mkdir()
    noise = os.urandom(size)
    paths = [f"part-{number:05}" for number in range(small)]
    for number, path in enumerate(paths):
        (source / path).write_bytes(number.to_bytes(8, "big") + noise[8:])
    taken: dict[str, dict[str, float]] = {}

    def note(what: str, how: str, spent: float) -> None:
        before = taken.setdefault(what, {}).get(how, spent)
        taken[what][how] = min(before, spent)

    with world(folder) as (_, ours, _bucket):
        for _ in range(passes):
            note("up", "plain", seconds(lambda: ours.up(source, paths)))
            note("down", "plain", seconds(lambda: ours.down(target, paths)))
            note("one file back", "plain", seconds(lambda: _read_some(ours, target, paths)) / _READS)
            note("up", "packed", seconds(lambda: ours.up(packed, _pack(source, packed, paths))))
            names = sorted(path.name for path in packed.iterdir())
            note("down", "packed", seconds(partial(_fetch_packs, ours, target, names)))
            note("one file back", "packed", seconds(partial(_read_some, ours, target, names)) / _READS)
    return taken


def _pack(source: Path, target: Path, paths: Sequence[str]) -> list[str]:
    names: list[str] = []
    archive: tarfile.TarFile | None = None
    for path in paths:
        if archive is None or archive.offset > _PACK_BYTES:
            if archive is not None:
                archive.close()
            names.append(f"pack-{len(names):04}.tar")
            archive = tarfile.open(target / names[-1], "w")  # noqa: SIM115 - the next pack ends it
        archive.add(source / path, path)
    if archive is not None:
        archive.close()
    return names


def _fetch_packs(ours: Ours, target: Path, names: Sequence[str]) -> None:
    ours.down(target, names)
    for name in names:
        with tarfile.open(target / name) as archive:
            archive.extractall(target, filter="data")


def _read_some(ours: Ours, target: Path, names: Sequence[str]) -> None:
    """Fetches single objects: what any tool has to do for one file."""
    for number in range(_READS):
        ours.down(target, [names[number * 7919 % len(names)]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--small", type=int, default=10_000, help="how many small files")
    parser.add_argument("--kilobytes", type=int, default=20, help="size of each")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="resolute-bench-layouts-") as text:
        folder = Path(text)
        size = options.kilobytes * 1000
        taken = packs(folder, small=options.small, size=size, passes=options.passes)
        results = Results(options.small, shares(folder), taken)
    say(json.dumps(asdict(results)) if options.json else "\n".join(results.describe()))
    if results.missed():
        sys.exit(f"decision 0017 has to be made anew: {'; '.join(results.missed())}")


if __name__ == "__main__":
    main()

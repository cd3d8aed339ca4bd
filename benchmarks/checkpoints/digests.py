"""What it costs that a commit compares the files of a directory with their digests, beside copying them.

    python benchmarks/checkpoints/digests.py [--megabytes N] [--small N] [--json]

One large file and many small ones are copied into a store as a trial does it, through to the disk and with
their digests, and then compared as the checkpoints service does it at the commit.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.standalone import say, seconds
from resolute.core.checkpoint.files.manifest import FileEntry, copy_and_hash, list_directory
from resolute_checkpoints.blobs.directory import DirectoryStore
from resolute_checkpoints.blobs.verification import KnownDigests
from resolute_checkpoints.domain.checkpoint import File

_CHECKPOINT = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"
_PASSES = 3
_SMALL_BYTES = 16 << 10
_MOST = 0.6
"""Share of the time of a copy."""


def measure(source: Path, store: Path) -> dict[str, float]:
    """Copies and compares the files of a directory; returns seconds, the best of some passes."""
    passes = [_once(source, store) for _ in range(_PASSES)]
    return {"copy": min(one for one, _ in passes), "compare": min(one for _, one in passes)}


def _once(source: Path, store: Path) -> tuple[float, float]:
    shutil.rmtree(store, ignore_errors=True)
    entries: list[FileEntry] = []
    paths = list(list_directory(source))
    copied = seconds(lambda: entries.extend(copy_and_hash(source, store / _CHECKPOINT, paths, on_disk=True)))
    files = [File(entry.path, entry.size, entry.digest) for entry in entries]
    directory = DirectoryStore(store, known=KnownDigests())
    return copied, seconds(lambda: directory.damaged(_CHECKPOINT, files, wanted=lambda: True))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, and prints what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=512, help="of the large file")
    parser.add_argument("--small", type=int, default=2000, help="small files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    results = {}
    with tempfile.TemporaryDirectory(prefix="digests-") as folder:
        for name, sizes in (
            ("one large file", [options.megabytes << 20]),
            (f"{options.small} small files", [_SMALL_BYTES] * options.small),
        ):
            source = Path(folder, "source")
            source.mkdir()
            for number, size in enumerate(sizes):
                (source / f"{number}.bin").write_bytes(os.urandom(size))
            results[name] = measure(source, Path(folder, "store"))
            shutil.rmtree(source)
    if options.json:
        print(json.dumps(results))
        return
    for name, took in results.items():
        share = took["compare"] / took["copy"]
        say(f"{name}: copied in {took['copy']:.2f} s, compared in {took['compare']:.2f} s ({share:.0%})")
    if any(took["compare"] > _MOST * took["copy"] for took in results.values()):
        sys.exit(f"missed the limit: a comparison may take {_MOST:.0%} of a copy")


if __name__ == "__main__":
    main()

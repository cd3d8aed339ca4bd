"""How long a checkpoint in the background keeps the training thread, beside ``shutil.copytree`` of its files.

    python benchmarks/checkpoints/background.py [--megabytes N] [--files N] [--passes N] [--json]

Files are in the page cache, as those that a script has just written. Each pass lets what was written get to
the disk before it begins; both take turns, and the best of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.standalone import say
from resolute import core

_MEGABYTE = 1_000_000
_MOST = 1.2


@dataclass(frozen=True)
class Results:
    """Seconds, the best of all passes."""

    copytree: float
    blocked: float
    whole: float
    """Until the checkpoint counts."""

    @property
    def ratio(self) -> float:
        return self.blocked / self.copytree


def measure(*, megabytes: int, files: int, passes: int) -> Results:
    """Measures everything."""
    copied, blocked, whole = [], [], []
    with tempfile.TemporaryDirectory(prefix="resolute-bench-background-") as text:
        folder = Path(text)
        source = folder / "source"
        source.mkdir()
        noise = os.urandom(megabytes * _MEGABYTE // files)
        for number in range(files):
            (source / f"part-{number:05}").write_bytes(noise)
        with core.init(checkpoint_storage=str(folder / "store")) as context:
            for number in range(passes):
                os.sync()
                began = time.perf_counter()
                shutil.copytree(source, folder / "copy")
                copied.append(time.perf_counter() - began)
                # Pages that wait for the disk would make the other one wait too.
                shutil.rmtree(folder / "copy")
                os.sync()
                began = time.perf_counter()
                checkpoint_id = context.checkpoint.upload(
                    source, {"steps_completed": number}, background=True
                )
                blocked.append(time.perf_counter() - began)
                context.checkpoint.wait()
                whole.append(time.perf_counter() - began)
                context.checkpoint.delete(checkpoint_id)
    return Results(min(copied), min(blocked), min(whole))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = measure(megabytes=options.megabytes, files=options.files, passes=options.passes)
    if options.json:
        say(json.dumps(asdict(results)))
    else:
        say(
            f"{options.megabytes} MB in {options.files} files: copytree {results.copytree:.2f} s, "
            f"blocked {results.blocked:.2f} s ({results.ratio:.2f} x), counts after {results.whole:.2f} s"
        )
    if results.ratio > _MOST:
        sys.exit(f"missed the limit: {results.ratio:.2f} x is more than {_MOST} x")


if __name__ == "__main__":
    main()

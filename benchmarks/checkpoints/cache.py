"""How fast a checkpoint comes out of a machine's cache, beside a plain copy of its files and the store.

    python benchmarks/checkpoints/cache.py [--megabytes N] [--files N] [--passes N] [--json]

The store is an S3 server on loopback (``rclone serve s3``), reached by a script that no cluster runs. What
comes out of the cache is compared with its digests on the way; the copy (``shutil.copytree``) is not. All
take turns, and the best of each counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.object_stores.s3 import REGION, S3Server, own_s3_server

from benchmarks.standalone import say, seconds
from resolute import core
from resolute.transfer.cache import DIRECTORY_VARIABLE

_MEGABYTE = 1_000_000
_LEAST = 0.8
"""Of the speed of a plain copy: what comes out of the cache is compared with its digests."""


@dataclass(frozen=True)
class Results:
    """Seconds, the best of all passes."""

    copytree: float
    store: float
    """From the store, without a cache."""
    filling: float
    """From the store into an empty cache."""
    cache: float
    """From the cache."""

    @property
    def ratio(self) -> float:
        """How fast the cache is beside a plain copy."""
        return self.copytree / self.cache


def measure(*, megabytes: int, files: int, passes: int) -> Results:
    """Measures everything."""
    with (
        tempfile.TemporaryDirectory(prefix="resolute-bench-cache-") as text,
        own_s3_server(Path(text) / "s3") as server,
    ):
        folder = Path(text)
        source = _fill(folder / "source", files=files, size=megabytes * _MEGABYTE // files)
        storage = _storage(server)
        with core.init(checkpoint_storage=storage) as context:
            checkpoint_id = context.checkpoint.upload(source, {"steps_completed": 1})

        def restore(target: Path) -> None:
            with core.init(checkpoint_storage=storage) as context:
                context.checkpoint.download(checkpoint_id, target)

        def timed(work: Callable[[Path], object]) -> float:
            taken = seconds(lambda: work(folder / "target"))
            shutil.rmtree(folder / "target")
            return taken

        taken: dict[str, list[float]] = {"copytree": [], "store": [], "filling": [], "cache": []}
        for _ in range(passes):
            taken["copytree"].append(timed(lambda target: shutil.copytree(source, target)))
            taken["store"].append(timed(restore))
            os.environ[DIRECTORY_VARIABLE] = str(folder / "cache")
            taken["filling"].append(timed(restore))
            taken["cache"].append(timed(restore))
            shutil.rmtree(folder / "cache")
            del os.environ[DIRECTORY_VARIABLE]
    return Results(**{name: min(found) for name, found in taken.items()})


def _storage(server: S3Server) -> dict[str, str]:
    os.environ["AWS_REGION"] = REGION
    return {
        "type": "s3",
        "bucket": server.new_bucket(),
        "endpoint_url": server.endpoint_url,
        "access_key": server.access_key,
        "secret_key": server.secret_key,
    }


def _fill(folder: Path, *, files: int, size: int) -> Path:
    folder.mkdir()
    for number in range(files):
        (folder / f"part-{number:05}").write_bytes(os.urandom(size))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500)
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
            f"from the cache {results.cache:.2f} s ({results.ratio:.2f} x as fast), "
            f"from the store {results.store:.2f} s, and into the cache {results.filling:.2f} s"
        )
    if results.ratio < _LEAST:
        sys.exit(f"missed the limit: {results.ratio:.2f} x as fast as copytree is less than {_LEAST} x")


if __name__ == "__main__":
    main()

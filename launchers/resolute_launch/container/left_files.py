"""Lists the files that an ended run left, for processes that cannot read its run directory.

It runs as ``python -m resolute_launch.container.left_files RUN_DIR``, in a container that has the run
directory, and writes the list there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from resolute.contracts.files.left_files import LISTING, left_files


def write_listing(run: Path) -> None:
    """Lists the files of a run directory in a file of it, whatever the run left in that place.

    Raises:
        OSError: It cannot be written, because the disk is full for example, or the directory became a link.
    """
    if run.is_symlink():
        raise NotADirectoryError(f"{run} is a link: what it leads to is not the run's")
    content = json.dumps(left_files(run))
    listing = run / LISTING
    if listing.is_dir() and not listing.is_symlink():
        shutil.rmtree(listing)
    listing.unlink(missing_ok=True)
    descriptor = os.open(listing, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w") as written:
        written.write(content)


if __name__ == "__main__":
    write_listing(Path(sys.argv[1]))

"""Prepares a container: ``python -m resolute_launch.exec.prep_container [--rendezvous ...]``.

It does nothing, because the supervisor has already prepared the container. It exists for container images of
other releases, whose scripts call it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from resolute.info import get_cluster_info

_STEPS = (
    "--trial",
    "--resources",
    "--rendezvous",
    "--proxy",
    "--notify_container_running",
    "--download_context_directory",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 in a container of a run, which is prepared; 1 outside of any."""
    parser = argparse.ArgumentParser(prog="determined.exec.prep_container", description=__doc__)
    for step in _STEPS:
        parser.add_argument(step, action="store_true", help="done already in a container of a run")
    parser.parse_args(arguments)
    if get_cluster_info() is not None:
        return 0
    sys.stderr.write(
        "determined.exec.prep_container: this is not a container of a run; submit the script: the supervisor "
        "of its run prepares a container (det experiment create CONFIG DIRECTORY)\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())

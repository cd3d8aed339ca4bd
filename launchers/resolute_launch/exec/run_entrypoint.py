"""Runs the entrypoint of this trial's config: ``python -m resolute_launch.exec.run_entrypoint``.

The command is the one that a supervisor runs. It replaces this process. Container images of other releases
start with this module.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from resolute.errors import InvalidArgumentError
from resolute.info import TRIAL, get_cluster_info
from resolute_launch.exec import entrypoint

_BEGUN = "RESOLUTE_ENTRYPOINT_BEGUN"
"""Keeps an entrypoint that is this module from running itself forever."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Becomes the entrypoint; returns an exit code only if that cannot be."""
    parser = argparse.ArgumentParser(prog="determined.exec.launch", description=__doc__)
    parser.parse_args(arguments)
    info = get_cluster_info()
    if info is None or info.task_type != TRIAL:
        return _refuse("no trial of a cluster runs here, so there is no config: run its command itself")
    if os.environ.get(_BEGUN):
        return _refuse("the entrypoint runs this module, which runs the entrypoint: name the training script")
    config = info.trial._config  # noqa: SLF001 - the documented private name
    try:
        command = entrypoint.plan(
            config.get("entrypoint"),
            python=sys.executable,
            distributed=sum(info.container_slot_counts) > 1,
        )
    except InvalidArgumentError as failure:
        return _refuse(str(failure))
    sys.stdout.flush()
    try:
        os.execvpe(command.argv[0], command.argv, {**os.environ, _BEGUN: "1"})  # noqa: S606  # the point of it
    except OSError as failure:
        return _refuse(f"cannot run {command.argv[0]!r}: {failure.strerror}", code=127)


def _refuse(why: str, *, code: int = 1) -> int:
    sys.stderr.write(f"determined.exec.launch: {why}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())

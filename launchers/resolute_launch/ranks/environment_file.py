"""Passes an environment to workers by a file, around a launcher that would write it into command lines.

Every user of the machine can read command lines, and so the secrets in them. An argument of a command line
also has at most 128 KiB, which the config of an experiment alone can exceed.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from resolute.contracts.run.directory import ENVIRONMENT_VARIABLE

VARIABLE = "RESOLUTE_WORKER_ENVIRONMENT"
"""Variable that holds the path of the file."""
_FOR_LAUNCHERS = frozenset(
    {
        *("PATH", "HOME", "USER", "SHELL", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "VIRTUAL_ENV"),
        # Tells which run a process belongs to.
        ENVIRONMENT_VARIABLE,
    }
)
_SETTINGS = ("HOROVOD_", "LC_")


@contextmanager
def environment_file(environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Leaves an environment in a file that its owner alone can read, while the block runs.

    Args:
        environ: What workers are to have.

    Yields:
        What the launcher itself needs of it, and the name of the file.
    """
    descriptor, name = tempfile.mkstemp(prefix="worker-environment-", dir=environ.get(ENVIRONMENT_VARIABLE))
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(dict(environ), file)
        visible = {
            key: value for key, value in environ.items() if key in _FOR_LAUNCHERS or key.startswith(_SETTINGS)
        }
        yield {**visible, VARIABLE: name}
    finally:
        Path(name).unlink(missing_ok=True)


def load_environment_file(environ: MutableMapping[str, str]) -> None:
    """Adds the file's variables to the environment of a worker; those that its launcher set are kept.

    Args:
        environ: The environment of this process.
    """
    name = environ.pop(VARIABLE, "")
    if name:
        for key, value in json.loads(Path(name).read_text()).items():
            environ.setdefault(key, value)

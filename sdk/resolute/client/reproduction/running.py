"""Runs a reproduced trial on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from resolute.client.reproduction.directory import SCRIPT
from resolute.client.schema.environments import EnvironmentRecord
from resolute.contracts.distribution import normalized_name
from resolute.errors import FailedPreconditionError

_CLUSTER_VARIABLES = ("DET_", "RESOLUTE_RUN_DIR", "RESOLUTE_INFO_DIR", "RESOLUTE_COLLECTIVE_")


def run(directory: Path, *, output: int | None = None) -> None:
    """Runs the script of a directory with this interpreter, and waits for it.

    Args:
        directory: The directory.
        output: Descriptor that takes what the trial prints; None for this process's own.

    Raises:
        FailedPreconditionError: It failed.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_CLUSTER_VARIABLES)}
    # Scripts say `python3` and mean the one that has what they import.
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
    environment = {**kept, "PATH": path, "PYTHON": sys.executable}
    shell = shutil.which("bash") or "/bin/sh"
    sys.stdout.flush()
    code = subprocess.run(
        [shell, str(directory.resolve() / SCRIPT)], env=environment, stdout=output, check=False
    ).returncode
    if code:
        raise FailedPreconditionError(
            f"the reproduced trial exited with {128 - code if code < 0 else code}; its output is above, "
            f"and `bash {directory / SCRIPT}` runs it again"
        )


def changed_packages(recorded: EnvironmentRecord) -> list[str]:
    """Says which recorded packages are installed here in other versions, or are missing."""
    here = {
        normalized_name(str(distribution.metadata["Name"])): distribution.version
        for distribution in distributions()
        if distribution.metadata["Name"]
    }
    return [
        f"{name} {here.get(normalized_name(name), 'missing')} instead of {version}"
        for name, version in sorted(recorded.packages.items())
        if here.get(normalized_name(name)) != version
    ]

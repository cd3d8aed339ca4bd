"""The software and the machine of a run: packages, interpreter, driver and host.

It reads only file names and a few small files, so that it takes milliseconds during the start of a trial.
"""

from __future__ import annotations

import json
import os
import platform
import re
import socket
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from resolute.api.experiments.v1.run_environment_pb2 import RunEnvironment
from resolute.contracts.distribution import normalized_name

MAX_PACKAGES = 5000
_MAX_TEXT = 500
_DISTRIBUTION = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-[^-]+)*\.(?:dist|egg)-info")
_NVIDIA = Path("/proc/driver/nvidia")
_CUDA = Path("/usr/local/cuda/version.json")


def run_environment(*, python: str, packages: Sequence[str] = ()) -> RunEnvironment:
    """Describes the environment of a run, as this process sees it.

    Args:
        python: The interpreter of the run; packages are those of this process, which it normally is.
        packages: Directories of packages that the run sees before those of this process.
    """
    return RunEnvironment(
        host_name=socket.gethostname()[:_MAX_TEXT],
        platform=platform.platform()[:_MAX_TEXT],
        python_version=platform.python_version(),
        python_path=python[:_MAX_TEXT],
        packages=[
            RunEnvironment.Package(name=name, version=version)
            for name, version in sorted(installed_packages([*packages, *sys.path]).items())[:MAX_PACKAGES]
        ],
        gpu_driver=_driver_version(),
        gpus=_gpu_models(),
        cuda_version=_cuda_version(),
    )


def installed_packages(path: Iterable[str]) -> dict[str, str]:
    """Finds the installed distributions with their versions, by the names of their metadata.

    Args:
        path: Directories, as ``sys.path`` has them; of a name that is there twice, the first counts.
    """
    versions: dict[str, str] = {}
    for directory in path:
        try:
            names = os.listdir(directory)  # noqa: PTH208 - names alone, and the directory may be an archive
        except OSError:
            continue
        for match in map(_DISTRIBUTION.fullmatch, names):
            if match is not None:
                name = normalized_name(match["name"])[:_MAX_TEXT]
                versions.setdefault(name, match["version"][:_MAX_TEXT])
    return versions


def _driver_version() -> str:
    match = re.search(r"Kernel Module[^0-9]*([0-9][0-9.]*)", _text(_NVIDIA / "version"))
    return match[1] if match else ""


def _gpu_models() -> list[str]:
    lines = (_text(file) for file in sorted((_NVIDIA / "gpus").glob("*/information")))
    return [line.partition(":")[2].strip()[:_MAX_TEXT] for text in lines for line in text.splitlines()[:1]]


def _cuda_version() -> str:
    try:
        return str(json.loads(_text(_CUDA))["cuda"]["version"])[:_MAX_TEXT]
    except (ValueError, KeyError, TypeError):
        return os.environ.get("CUDA_VERSION", "")[:_MAX_TEXT]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""

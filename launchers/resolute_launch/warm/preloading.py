"""Imports modules into a parked process, and checks that it may still be forked afterwards."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from resolute.contracts.run.directory import ENVIRONMENT_VARIABLE
from resolute_launch.warm.environment import PER_RUN

_BLAS_THREADS = (
    "openblas_get_num_threads",
    "openblas_get_num_threads64_",
    "scipy_openblas_get_num_threads",
    "scipy_openblas_get_num_threads64_",
)
_SELF = Path("/proc/self")
_LATER: Mapping[str, Sequence[str]] = {
    "torch": ("torch._dynamo",),
    "resolute": ("resolute.core.remote.assembly", "tensorboard.summary.writer.record_writer"),
}
"""Modules that a library imports only while it works: torch at the first step, ours in ``core.init()``."""


def preload(names: Iterable[str]) -> None:
    """Imports modules; those that cannot be imported are left to the script, which then says why."""
    for name in names:
        if name in sys.modules:
            continue
        # What a script prints or raises when it imports this is its own business, and comes in its own log.
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)


def import_for_forks(names: Iterable[str], *, changed: Sequence[str] = (), with_later: bool = False) -> str:
    """Imports modules into a process that is to be forked.

    Args:
        names: Modules; those that cannot be imported are left to the script, which then says why.
        changed: Variables that the script changes, perhaps before it imports these modules.
        with_later: Also import what libraries that are here import only while they work.

    Returns:
        Why this process must not be forked; empty if it may.
    """
    # Imports make next to no garbage, and looking for it would take a quarter of their time.
    gc.disable()
    with _asked_for((*PER_RUN, *changed)) as asked:
        preload(names)
        if with_later:
            _preload_later_imports()
    gc.freeze()
    gc.enable()
    if asked:
        return f"imports have asked for {asked[0]}, which is not the same in all runs"
    return _why_not_forkable()


@contextlib.contextmanager
def _asked_for(beginnings: tuple[str, ...]) -> Iterator[list[str]]:
    """Lists variables that are asked for, by how their names begin: a module may differ by what it finds."""
    asked: list[str] = []
    encode = os.environ.encodekey

    def record(name: str) -> str:
        # Code that copies the environment reads all variables: of runs, the directory of this one alone.
        if isinstance(name, str) and name.startswith(beginnings) and name != ENVIRONMENT_VARIABLE:
            asked.append(name)
        return encode(name)

    os.environ.encodekey = record
    try:
        yield asked
    finally:
        os.environ.encodekey = encode


def _preload_later_imports() -> None:
    """Imports what libraries that are here import only while they work."""
    for library, names in _LATER.items():
        if library in sys.modules:
            preload(names)


def _why_not_forkable() -> str:
    """Says why this process must not be forked; empty if it may."""
    if threading.active_count() > 1:
        names = sorted(
            thread.name for thread in threading.enumerate() if thread is not threading.main_thread()
        )
        return f"imports have started threads: {', '.join(names)}"
    extra = len(os.listdir(_SELF / "task")) - 1 - sum(_blas_pools())  # noqa: PTH208 - names alone
    if extra > 0:
        return f"imports have started {extra} threads that are not of a BLAS library"
    if any(link.startswith(("/dev/nvidia", "/dev/kfd")) for link in _open_files()):
        return "imports have opened the GPU"
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
        return "imports have initialized CUDA"
    return ""


def preloadable(*, beside: Iterable[str], outside: Path) -> list[str]:
    """Names the modules of this process that another one may import before its script, in order.

    Args:
        beside: Modules that are not named.
        outside: Directory whose modules are not named: the code of the run itself.
    """
    known, prefix = set(beside), f"{outside}{os.sep}"
    names = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        origin = getattr(spec, "origin", None)
        if name in known or spec is None or spec.name != name or not origin:
            continue
        if os.path.isabs(origin) and not origin.startswith(prefix):  # noqa: PTH117 - may be no path at all
            names.append(name)
    return names


def _blas_pools() -> Iterator[int]:
    """Yields the threads of each OpenBLAS in this process, which itself survives a fork."""
    paths = {line.split()[-1] for line in (_SELF / "maps").read_text().splitlines() if "openblas" in line}
    for path in sorted(paths):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(path)
            for name in _BLAS_THREADS:
                if hasattr(library, name):
                    yield max(int(getattr(library, name)()) - 1, 0)
                    break


def _open_files() -> Iterator[str]:
    for name in os.listdir(_SELF / "fd"):  # noqa: PTH208 - names alone
        with contextlib.suppress(OSError):
            yield os.readlink(_SELF / "fd" / name)  # noqa: PTH115 - links of the kernel, not paths

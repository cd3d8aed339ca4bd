"""Runs git so that no setting of a work tree runs a program, and its output is the same for all users."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

_CHUNK = 64 * 1024
_LARGEST_FILE = 1024 * 1024
"""Bytes; of larger files a diff only says that they differ."""
_KEPT_VARIABLES = (
    "GIT_CONFIG",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
)
"""How these begin. Others may name another repository, such as those that git sets for its hooks."""
_VARIABLES = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # Objects that a partial clone lacks are not fetched: by the first in new versions, the second in all.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_SETTINGS = (
    "core.fsmonitor=false",
    f"core.bigFileThreshold={_LARGEST_FILE}",
    "core.quotePath=true",
    "diff.autoRefreshIndex=true",
    "diff.relative=false",
    "diff.suppressBlankEmpty=false",
)
_FILTERS = r"^filter\..*\.(clean|process|required)$"


class Git:
    """Git in one directory.

    Args:
        root: The directory.
        seconds: Total time limit of all calls.
    """

    def __init__(self, root: Path, *, seconds: float) -> None:
        self._root = root
        self._deadline = time.monotonic() + seconds
        self._settings = list(_SETTINGS)
        self._settings += self._disabled_filters()

    def read(self, *arguments: str, limit: int) -> bytes:
        """Returns what a command prints; of more than the limit, a beginning that is longer than the limit.

        Raises:
            CalledProcessError: It failed.
            TimeoutExpired: The time is over.
            OSError: There is no git.
        """
        return self._read(arguments, limit=limit, accepted=(0,))

    def _disabled_filters(self) -> list[str]:
        # `git diff` runs the filters of changed files. Exit code 1: there are none.
        arguments = ("config", "--name-only", "-z", "--get-regexp", _FILTERS)
        output = self._read(arguments, limit=_CHUNK, accepted=(0, 1))
        names = [name.decode() for name in output.split(b"\0") if name]
        if len(output) > _CHUNK or any("=" in name for name in names):
            raise ValueError("the filters of the repository cannot be disabled")
        return [f"{name}={'false' if name.endswith('.required') else ''}" for name in names]

    def _read(self, arguments: tuple[str, ...], *, limit: int, accepted: tuple[int, ...]) -> bytes:
        settings = [word for setting in self._settings for word in ("-c", setting)]
        command = ["git", *settings, "-C", str(self._root), *arguments]
        with subprocess.Popen(
            command,
            env=_environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                output = self._output(process, limit)
                code = 0 if len(output) > limit else process.wait(self._left())
            finally:
                process.kill()
        if code not in accepted:
            raise subprocess.CalledProcessError(code, "git")
        return output

    def _output(self, process: subprocess.Popen[bytes], limit: int) -> bytes:
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        output = bytearray()
        while len(output) <= limit:
            if not poll.poll(self._left() * 1000):
                raise subprocess.TimeoutExpired("git", 0)
            chunk = os.read(descriptor, _CHUNK)
            if not chunk:
                break
            output += chunk
        return bytes(output)

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0)


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT_VARIABLES)
    }
    return {**kept, **_VARIABLES}

"""Runs the process of one rank: ``python -m resolute_launch.wrap_rank RANK SCRIPT...``.

Each line of its output begins with ``[rank=N]``, so that lines of all ranks can go into one log. RANK is a
number, or a comma-separated list of environment variables of which the first that is set holds it. Signals
are passed on, and the exit code is the script's own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import selectors
import signal
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resolute.run_directory import RunDirectory
from resolute.spool.splitter import MAX_LINE, cut
from resolute_launch import variables
from resolute_launch.failure import KEPT_LINES, record_rank_failure
from resolute_launch.layers.handover import take_over
from resolute_launch.offspring import SignalForwarder, start_led
from resolute_launch.rank_secrets import RankSecrets
from resolute_launch.secrecy import Masking

_READ_BYTES = 1 << 16


def find_rank(text: str, environ: Mapping[str, str]) -> int | None:
    """Returns the rank that a RANK argument stands for, or None if no variable of it holds one."""
    for part in text.split(","):
        value = part if part.isdecimal() else environ.get(part, "")
        if value.isdecimal():
            return int(value)
    return None


class Prefixer:
    """Puts the rank before each piece of output that ends in a newline or a carriage return.

    Args:
        rank: The rank.
        kept: How many of the latest pieces to remember.
    """

    def __init__(self, rank: int, *, kept: int = 0) -> None:
        self.latest: deque[bytes] = deque(maxlen=kept)
        self._prefix = b"[rank=%d] " % rank
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Takes the next bytes and returns what is whole, prefixes added."""
        data = self._rest + data
        pieces = data.splitlines(keepends=True)
        self._rest = pieces.pop() if pieces and pieces[-1][-1:] not in b"\r\n" else b""
        while len(self._rest) > MAX_LINE:
            piece, self._rest = cut(self._rest)
            pieces.append(piece + b"\n")
        self.latest.extend(pieces)
        return b"".join(self._prefix + piece for piece in pieces)

    def finish(self) -> bytes:
        """Returns what is left when the output has ended."""
        rest, self._rest = self._rest, b""
        self.latest.append(rest)
        return self._prefix + rest + b"\n" if rest else b""


@dataclass(frozen=True)
class Target:
    """Where a stream of the script goes."""

    descriptor: int
    prefixer: Prefixer
    masking: Masking

    def feed(self, data: bytes) -> None:
        """Takes the next bytes."""
        self._write(self.prefixer.feed(self.masking.feed(data)))

    def finish(self) -> None:
        """Writes what is left when the stream has ended."""
        self._write(self.prefixer.feed(self.masking.finish()) + self.prefixer.finish())

    def _write(self, data: bytes) -> None:
        """Writes all of it; if nobody reads any more, the script still runs to its end."""
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while view:
                view = view[os.write(self.descriptor, view) :]


@dataclass(frozen=True, slots=True)
class End:
    """How the script ended."""

    exit_code: int
    """128 + n when signal n ended it."""
    said: str = ""
    """What it said last on standard error."""


def run(rank: int, command: Sequence[str], *, redirect: bool) -> End:
    """Runs a command as one rank.

    Args:
        rank: Its rank.
        command: Program and arguments.
        redirect: Whether output goes straight into the log of the run, past launchers that would rewrite it.
    """
    forwarder = SignalForwarder()
    try:
        # Launchers signal this process, its group, or all of its descendants: the script hears of it once.
        process = start_led(command, at_our_death=signal.SIGKILL, pipes=True)
    except OSError as failure:
        sys.stderr.write(f"[rank={rank}] cannot run {command[0]!r}: {failure.strerror}\n")
        return End(127)
    forwarder.lead(process)
    assert process.stdout is not None
    assert process.stderr is not None
    secrets = RankSecrets(os.environ, RunDirectory.from_environment())
    errors = Prefixer(rank, kept=KEPT_LINES)
    out = Target(_descriptor(variables.STDOUT, 1, redirect), Prefixer(rank), Masking(secrets.known))
    err = Target(_descriptor(variables.STDERR, 2, redirect), errors, Masking(secrets.known))
    _copy({process.stdout.fileno(): out, process.stderr.fileno(): err}, secrets)
    code = process.wait()
    said = b"".join(errors.latest).decode("utf-8", "replace").strip()
    return End(128 - code if code < 0 else code, said)


def _descriptor(variable: str, standard: int, redirect: bool) -> int:
    path = os.environ.get(variable)
    if not redirect or not path:
        return standard
    try:
        # Without waiting: a pipe that nobody reads belongs to a run that is over.
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return standard
    os.set_blocking(descriptor, True)
    return descriptor


def _copy(targets: Mapping[int, Target], secrets: RankSecrets) -> None:
    with selectors.DefaultSelector() as selector:
        for source in targets:
            selector.register(source, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, _READ_BYTES)
                target = targets[key.fd]
                if data:
                    secrets.look()
                    target.feed(data)
                else:
                    target.finish()
                    selector.unregister(key.fd)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Returns:
        The exit code of the script, or 1 when no variable holds a rank.
    """
    parser = argparse.ArgumentParser(prog="resolute_launch.wrap_rank", description=__doc__)
    parser.add_argument(
        "--no-redirect-stdio", action="store_true", help="leave the output to the launcher above"
    )
    parser.add_argument("rank", metavar="RANK", help="a number, or names of variables: A,B,C")
    parser.add_argument("script", metavar="SCRIPT...", nargs=argparse.REMAINDER, help="what to run")
    options = parser.parse_args(arguments)
    command = options.script[1:] if options.script[:1] == ["--"] else options.script
    if not command:
        parser.error("empty script is not allowed")
    take_over(os.environ)
    rank = find_rank(options.rank, os.environ)
    if rank is None:
        sys.stderr.write(f"none of the variables {options.rank} is set to a rank\n")
        return 1
    end = run(rank, command, redirect=not options.no_redirect_stdio)
    directory = RunDirectory.from_environment()
    if end.exit_code and directory is not None:
        record_rank_failure(directory, rank=rank, exit_code=end.exit_code, said=end.said)
    return end.exit_code


if __name__ == "__main__":
    sys.exit(main())

"""Runs the process of one rank: ``python -m resolute_launch.wrap_rank RANK SCRIPT...``.

Each line of its output begins with ``[rank=N]``, so that the lines of all ranks can go into one log. RANK is
a number, or a comma-separated list of environment variables, of which the first that is set has the number.
Signals are forwarded, and the exit code is the script's own. Processes that the script leaves running in its
process group are ended with it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.directory import RunDirectory
from resolute.runtime.redaction import StreamRedactor
from resolute_launch import environment_variables
from resolute_launch.interpreter._resolute_output import VARIABLE, WaitBudget, name_pipes
from resolute_launch.processes.child_process import SignalForwarder, start_child
from resolute_launch.ranks.environment_file import load_environment_file
from resolute_launch.ranks.failures import KEPT_LINES, RankEnd, record_rank_end
from resolute_launch.ranks.line_prefix import Prefixer
from resolute_launch.ranks.output import RankOutput, Target
from resolute_launch.ranks.secrets import RankSecrets

_ATTEMPT = "TORCHELASTIC_RESTART_COUNT"


def find_rank(text: str, environ: Mapping[str, str]) -> int | None:
    """Returns the rank that a RANK argument stands for, or None if no variable of it holds one."""
    for part in text.split(","):
        value = part if part.isdecimal() else environ.get(part, "")
        if value.isdecimal():
            return int(value)
    return None


@dataclass(frozen=True, slots=True)
class End:
    """The end of the script."""

    exit_code: int
    """128 + n when signal n ended it."""
    time: float
    """Unix time of it."""
    stderr_tail: str = ""
    """The last lines of its standard error."""


def run(rank: int, command: Sequence[str], *, redirect: bool, clock: Clock = SYSTEM_CLOCK) -> End:
    """Runs a command as one rank.

    Args:
        rank: Its rank.
        command: Program and arguments.
        redirect: Whether output goes straight into the log of the run, past launchers that would rewrite it.
        clock: Tells when it ended.
    """
    forwarder = SignalForwarder()
    pipes = os.pipe(), os.pipe()
    readers, writers = zip(*pipes, strict=True)
    try:
        # Launchers signal this process, its group, or all of its descendants: the script gets it once.
        process = start_child(
            command,
            environ={**os.environ, VARIABLE: name_pipes(*writers)},
            parent_death_signal=signal.SIGKILL,
            output=writers,
        )
    except OSError as failure:
        sys.stderr.write(f"[rank={rank}] cannot run {command[0]!r}: {failure.strerror}\n")
        return End(127, clock.time())
    finally:
        for writer in writers:
            os.close(writer)
    forwarder.attach(process)
    directory = RunDirectory.from_environment()
    secrets = RankSecrets(os.environ, directory)
    descriptors = (
        _descriptor(environment_variables.STDOUT, 1, redirect),
        _descriptor(environment_variables.STDERR, 2, redirect),
    )
    # The log of a run keeps of a progress bar what it showed last; elsewhere every piece is a line.
    output = Prefixer(rank, whole_lines=directory is None)
    errors = Prefixer(rank, kept=KEPT_LINES, whole_lines=directory is None)
    budget = WaitBudget()
    out, err = (
        Target(descriptor, other, budget, prefixer, StreamRedactor(secrets.known))
        for descriptor, other, prefixer in zip(
            descriptors, reversed(descriptors), (output, errors), strict=True
        )
    )
    targets = dict(zip(readers, (out, err), strict=True))
    ended_at = RankOutput(process, targets, secrets=secrets, clock=clock).copy()
    code = process.wait()
    stderr_tail = b"".join(errors.latest).decode("utf-8", "replace").strip()
    return End(128 - code if code < 0 else code, ended_at, stderr_tail)


def _descriptor(variable: str, standard: int, redirect: bool) -> int:
    path = os.environ.get(variable)
    if not redirect or not path:
        return standard
    try:
        # Without waiting: a pipe without a reader belongs to a run that is over.
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return standard
    os.set_blocking(descriptor, True)
    return descriptor


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
    load_environment_file(os.environ)
    rank = find_rank(options.rank, os.environ)
    if rank is None:
        sys.stderr.write(f"none of the variables {options.rank} is set to a rank\n")
        return 1
    end = run(rank, command, redirect=not options.no_redirect_stdio)
    directory = RunDirectory.from_environment()
    if directory is not None:
        # A full disk changes no exit code.
        with contextlib.suppress(OSError):
            record_rank_end(
                directory,
                RankEnd(
                    rank=rank,
                    exit_code=end.exit_code,
                    time=end.time,
                    stderr_tail=end.stderr_tail,
                    attempt=int(os.environ.get(_ATTEMPT, "0")),
                ),
            )
    return end.exit_code


if __name__ == "__main__":
    sys.exit(main())

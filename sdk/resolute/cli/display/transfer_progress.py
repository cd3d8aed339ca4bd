"""The progress of a transfer on the terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, final

import click

from resolute.cli.display.terminal import direct, neutralised
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.transfer.progress import Progress, ProgressLines

if TYPE_CHECKING:
    from rich import progress as bars


@contextlib.contextmanager
def transfer_progress(what: str, *, total: int, clock: Clock = SYSTEM_CLOCK) -> Iterator[Progress]:
    """Shows progress on stderr for the length of a block: a bar on a terminal, elsewhere a line now and then.

    Args:
        what: What is done, such as ``checkpoint 12 is downloaded``.
        total: How many bytes there are.
        clock: Tells when it is time for a line.

    Yields:
        Takes the bytes.
    """
    if not sys.stderr.isatty():
        yield ProgressLines(what, total=total, say=lambda line: click.echo(line, err=True), clock=clock)
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.percentage:>3.0f}%"),
        bars.BarColumn(bar_width=None),
        bars.DownloadColumn(binary_units=True),
        bars.TransferSpeedColumn(),
        bars.TimeRemainingColumn(),
    )
    # It leaves the line to what is printed in the end, and stdout, which may be a file, alone.
    console = Console(file=direct(sys.stderr))
    with bars.Progress(*columns, console=console, transient=True, redirect_stdout=False) as display:
        yield _Bar(display, display.add_task(neutralised(what), total=total))


@final
class _Bar:
    def __init__(self, display: bars.Progress, task: bars.TaskID) -> None:
        self._display = display
        self._task = task

    def advance(self, count: int) -> None:
        self._display.advance(self._task, count)

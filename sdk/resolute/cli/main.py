"""The ``resolute`` command, installed as ``det`` too."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from resolute.cli.display.rendering import Renderings, use_renderings
from resolute.cli.display.terminal import neutralised_output
from resolute.cli.options.settings import Settings
from resolute.cli.registry.commands import ROOT_COMMANDS, RootGroup
from resolute.cli.registry.counterparts import COUNTERPARTS
from resolute.cli.registry.foreign_words import FOREIGN_WORDS

_DETERMINED = "det"
"""The name under which commands print as those of Determined do."""
_UNWRITABLE = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from resolute.contracts import distribution

        click.echo(f"{ctx.info_name} {distribution.version()}")
        ctx.exit()


@click.group(
    cls=RootGroup,
    entries=ROOT_COMMANDS,
    counterparts=COUNTERPARTS[""],
    foreign=FOREIGN_WORDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "-m", "--master", default="", metavar="HOST:PORT", help="Address of the cluster [RESOLUTE_MASTER]."
)
@click.option("-u", "--user", default="", metavar="NAME", help="Act as this user.")
@click.option(
    "-v",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version of the client and exit.",
)
@click.pass_context
def cli(ctx: click.Context, master: str, user: str) -> None:
    """Train models on this machine or on a cluster.

    Without -m, commands use the cluster that RESOLUTE_MASTER or DET_MASTER names, or else the one that
    `resolute up` runs on this machine. Commands can be shortened: `resolute e ls`.
    """
    if master:
        # Loaded only now: it loads what lists distributions.
        from resolute.cli.registry.plugins import OF_THIS_MACHINE

        if ctx.invoked_subcommand in OF_THIS_MACHINE:
            ctx.fail(
                f"`{ctx.info_name} {ctx.invoked_subcommand}` is about the cluster of this machine, in the "
                "directory that RESOLUTE_HOME names: leave out -m."
            )
    ctx.obj = Settings(master=master, user=user)
    if ctx.info_name == _DETERMINED:
        use_renderings(ctx, _of_determined)
    ctx.call_on_close(ctx.obj.close)


def _of_determined() -> Renderings:
    # Loaded when something is printed: most commands print nothing by it.
    renderings: Renderings = import_module("resolute.cli.determined.renderings").RENDERINGS
    return renderings


def main(arguments: Sequence[str] | None = None, *, program: str | None = None) -> None:
    """Runs one command and exits: 0 if it did what was asked, 1 if not, 2 if the command line is wrong.

    Args:
        arguments: The command line without the program; None for this process's own.
        program: Name of the program in messages; None for the one that this process was started as.
    """
    # The core's own messages on stderr would stand beside ours, which say what to do.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    code: int | str | None
    with neutralised_output():
        try:
            code = run(list(sys.argv[1:] if arguments is None else arguments), program=program)
        except SystemExit as stop:
            # Of a command, or of click where the reader of our output has gone; the rest is flushed below.
            code = stop.code
        except Exception:  # noqa: BLE001 - a defect of this program; its traceback can quote what others wrote
            traceback.print_exc()
            code = 1
        try:
            sys.stdout.flush()
        except OSError as failure:
            # What was not written is still there, and fails again: an error that was shown is not repeated.
            code = _stop_writing(failure, silent=code != 0)
    sys.exit(code)


def run(arguments: list[str], *, program: str | None = None) -> int:
    """Runs one command and returns its exit code.

    Args:
        arguments: The command line without the program.
        program: Name of the program in messages; None for the one that this process was started as.
    """
    with neutralised_output():
        return _run(arguments, program)


def _run(arguments: list[str], program: str | None) -> int:
    try:
        result = cli.main(arguments, prog_name=program, standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        if isinstance(error, click.UsageError):
            # Loaded only now: it knows the client, which help and completion do without.
            from resolute.cli.failures import usage_advice

            if advice := usage_advice(error, arguments):
                click.echo(advice, err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except OSError as failure:
        # Commands explain theirs: this is one of help or of the version.
        return _stop_writing(failure)
    return result if isinstance(result, int) else 0


def _stop_writing(failure: OSError, *, silent: bool = False) -> int:
    """Nothing more can be written to stdout; Python must not complain while it closes it."""
    if failure.errno not in _UNWRITABLE:
        raise failure
    # A reader that has gone, as `head` does, is no failure to speak of.
    if not silent and not isinstance(failure, BrokenPipeError):
        from resolute.cli.failures import full_disk_text

        click.echo(f"error: {full_disk_text(failure)}", err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1

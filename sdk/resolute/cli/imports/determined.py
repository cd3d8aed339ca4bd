"""``resolute import determined``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from resolute.cli.accounts.passwords import hidden
from resolute.cli.options.settings import Settings
from resolute.errors import InvalidArgumentError

if TYPE_CHECKING:
    from resolute.imports.master import Master
    from resolute.imports.report import Report

_TOKEN_VARIABLE = "DETERMINED_TOKEN"  # noqa: S105 - the name of a variable


@click.command()
@click.argument("address")
@click.option("--as", "user", default="admin", show_default=True, help="User of the Determined cluster.")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"File with that user's password, which may be empty. Without it, "
    f"{_TOKEN_VARIABLE} may hold a token, or the password is asked for.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Certificates to trust for the Determined cluster.",
)
@click.option(
    "--experiment", "experiments", type=int, multiple=True, help="Only this experiment; repeatable."
)
@click.option(
    "--copy-checkpoints",
    is_flag=True,
    help="Copy the files of checkpoints into the storage of this cluster, with the credentials of the old "
    "configs or of the environment, and compare every byte.",
)
@click.option("--no-logs", is_flag=True, help="Leave the lines of logs on the Determined cluster.")
@click.option("--dry-run", is_flag=True, help="Only count what there is.")
@click.pass_obj
def determined(  # noqa: PLR0913, PLR0917 - click hands over every option
    settings: Settings,
    address: str,
    user: str,
    password_file: Path | None,
    ca_file: Path | None,
    experiments: tuple[int, ...],
    copy_checkpoints: bool,
    no_logs: bool,
    dry_run: bool,
) -> None:
    """Import a Determined cluster, of release 0.19 to 0.38.

    ADDRESS is that of its master, such as http://master:8080. The import can be stopped and started again at
    any time: it continues where it was, and what has come stays as it is. Checkpoints are registered where
    they lie unless they are to be copied.
    """
    from resolute.imports.master import Master, MasterUnavailableError
    from resolute.imports.report import Report
    from resolute.imports.run import Options, bring, count

    master = Master(address, ca_file="" if ca_file is None else str(ca_file))
    try:
        _sign_in(master, user, password_file)
        options = Options(experiments=experiments, logs=not no_logs, copies_checkpoints=copy_checkpoints)
        report = Report()
        try:
            if dry_run:
                count(master, options, report=report)
            else:
                bring(master, settings.services(), options, report=report, progress=_show)
        finally:
            _print(report, new="there" if dry_run else "new")
    except MasterUnavailableError as error:
        raise click.ClickException(
            f"{error}; imported records stay: start the same import again, and it continues"
        ) from error
    finally:
        master.close()
    if report.failures:
        raise click.ClickException(
            f"{len(report.failures)} things were not imported, see above; start the same import again once "
            "that is mended"
        )


def _sign_in(master: Master, user: str, password_file: Path | None) -> None:
    token = os.environ.get(_TOKEN_VARIABLE, "")
    if token and password_file is None:
        master.use_token(token)
        return
    if password_file is not None:
        try:
            password = password_file.read_text(encoding="utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(
                f"the password in {password_file} is not text in UTF-8: save the file in that encoding"
            ) from error
    else:
        prompt = f"Password of {user} at {master.address}"
        password = hidden(
            prompt, instead="--password-file names a file with it", default="", show_default=False
        )
    master.sign_in(user, password)


def _show(text: str) -> None:
    click.echo(text, err=True)


def _print(report: Report, *, new: str) -> None:
    for kind, counts in report.counts.items():
        parts = [f"{counts.sent} sent"] if counts.sent else [f"{counts.new} {new}"]
        parts += [f"{counts.known} here before"] if counts.known else []
        click.echo(f"{kind}: {', '.join(parts)}")
    if report.remarks:
        click.echo("\nNot imported, or imported otherwise:")
        for remark, times in report.remarks.items():
            click.echo(f"  {remark}" + (f" ({times} times)" if times > 1 else ""))
    for failure in report.failures:
        click.echo(f"not imported: {failure}", err=True)

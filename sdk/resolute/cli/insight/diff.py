"""``resolute diff``."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import click

from resolute.cli.display.output import Column, Format, format_option, print_items, print_json
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.insight.differences import Comparison, Difference, RunKey, compare

if TYPE_CHECKING:
    _RunKeyType = click.ParamType[RunKey]
else:  # generic only in newer releases of click
    _RunKeyType = click.ParamType
_KEY = re.compile(r"(?P<trial>[^.]+)(?:\.(?P<run>[0-9]{1,9}))?")


class _RunKey(_RunKeyType):
    """``12``, a trial, or ``12.3``, its third run."""

    name = "trial[.run]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> RunKey:
        """Checks the form; whether there is such a run, the service knows."""
        match = _KEY.fullmatch(str(value).strip())
        if match is None or match["run"] == "0":
            self.fail(
                f"{value!r} is neither a trial, such as 12, nor a run of one, such as 12.3.", param, ctx
            )
        run = match["run"]
        return RunKey(TRIAL.convert(match["trial"], param, ctx), None if run is None else int(run))


RUN = _RunKey()
_SECTIONS = ("config", "hyperparameters", "run", "source", "environment", "metrics")


@click.command()
@click.argument("a", metavar="A", type=RUN)
@click.argument("b", metavar="B", type=RUN)
@format_option
@click.pass_context
def diff(ctx: click.Context, a: RunKey, b: RunKey, output: Format) -> None:
    """Show what differs between trials A and B.

    Compared are config, hyperparameters, code and its git commit, environment and metrics. A and B are
    trials, such as 12, or runs of trials, such as 12.3. The exit code is 1 if anything differs.
    """
    settings: Settings = ctx.obj
    result = compare(settings.services(), a, b)
    if output is Format.JSON:
        print_json({"differs": result.differs, "comparison": result})
    elif output is Format.CSV:
        print_items(
            [(name, change) for name in _SECTIONS for change in getattr(result, name)],
            _CSV_COLUMNS,
            output=output,
        )
    else:
        _show(result)
    if result.differs:
        ctx.exit(1)


_CSV_COLUMNS: tuple[Column[tuple[str, Difference]], ...] = (
    Column("Section", lambda row: row[0]),
    Column("Name", lambda row: row[1].path),
    Column("A", lambda row: row[1].a),
    Column("B", lambda row: row[1].b),
)


def _short(value: Any) -> Any:
    """A text of many lines, such as a diff, as what it is: tables have no room for it."""
    if isinstance(value, str) and "\n" in value:
        digest = hashlib.sha256(value.encode()).hexdigest()[:8]
        return f"{value.count(chr(10))} lines ({digest})"
    return value


def _show(comparison: Comparison) -> None:
    columns: tuple[Column[Difference], ...] = (
        Column("Name", lambda one: one.path),
        Column(comparison.a, lambda one: _short(one.a)),
        Column(comparison.b, lambda one: _short(one.b)),
    )
    for name in _SECTIONS:
        rows: tuple[Difference, ...] = getattr(comparison, name)
        if rows:
            print_items(rows, columns, output=Format.TABLE, title=name.capitalize())
            click.echo()
    if comparison.code:
        click.secho("Code", bold=True)
        for file in comparison.code:
            click.echo(file.diff or f"{file.path}: {file.change}")
    if not comparison.differs:
        click.echo(f"{comparison.a} and {comparison.b} do not differ")

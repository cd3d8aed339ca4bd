"""``resolute trial files``."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import click

from resolute.cli.display.local_time import local_time
from resolute.cli.display.output import Column, Format, format_option, print_items, print_json
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.remote.trials import RunFileRecord, Trials
from resolute.contracts.sizes import human_size


@click.command()
@click.argument("trial_id", type=TRIAL)
@click.argument("prefix", default="")
@click.option("--run", default=0, metavar="N", help="The run [the latest whose files are held].")
@click.option(
    "-o", "--output-dir", type=click.Path(path_type=Path), help="Fetch the files to this directory."
)
@format_option
@click.pass_obj
def files(
    settings: Settings, trial_id: str, prefix: str, run: int, output_dir: Path | None, output: Format
) -> None:
    """List or fetch the files that are held of a failed run, whose paths begin with PREFIX.

    on_failure in the config says for how long they are held.
    """
    trials = settings.services().trials
    held = trials.files(trial_id, run=run)
    chosen = [file for file in held.files if file.path.startswith(prefix)]
    if output_dir is not None:
        for file in chosen:
            _fetch(trials, trial_id, file, run=held.run, target=output_dir)
        click.echo(f"{len(chosen)} files of run {held.run} are in {output_dir}")
    elif output is Format.JSON:
        print_json(chosen)
    else:
        print_items(chosen, _COLUMNS, output=output)
        if held.hold_time is not None:
            click.echo(f"Held until {local_time(held.hold_time)}", err=True)


_COLUMNS: tuple[Column[RunFileRecord], ...] = (
    Column("Size", lambda file: human_size(file.size), right=True),
    Column("Path", lambda file: file.path),
)


def _fetch(trials: Trials, key: str, file: RunFileRecord, *, run: int, target: Path) -> None:
    parts = PurePosixPath(file.path).parts
    # A server that was taken over must not write anywhere else.
    if file.path.startswith("/") or ".." in parts:
        raise click.ClickException(f"the cluster lists a file outside of its directory: {file.path!r}")
    path = target.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as written:
        for data in trials.read_file(key, file.path, run=run):
            written.write(data)

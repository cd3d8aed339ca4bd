"""``resolute experiment download-model-def``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.downloads.model_definition import save_model_definition, unpack_model_definition
from resolute.errors import FailedPreconditionError


@click.command(name="download-model-def")
@click.argument("experiment_id", type=EXPERIMENT)
@click.option(
    "-o",
    "--output-dir",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Target directory [current directory].",
)
@click.option("-x", "--extract", is_flag=True, help="Unpack it into a directory.")
@click.pass_obj
def download_model_definition(
    settings: Settings, experiment_id: str, output_dir: Path, extract: bool
) -> None:
    """Download the submitted code as a gzipped tar archive."""
    experiments = settings.services().experiments
    number = experiments.get(experiment_id).id
    archive = save_model_definition(
        experiments, experiment_id, output_dir / f"experiment_{number}_model_def.tgz"
    )
    if not extract:
        click.echo(archive)
        return
    directory = output_dir / f"experiment_{number}_model_def"
    try:
        unpack_model_definition(archive, directory)
    except FileExistsError as error:
        raise FailedPreconditionError(
            f"{directory} is not empty; move it away or name another with -o"
        ) from error
    archive.unlink()
    click.echo(directory)

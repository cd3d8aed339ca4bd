"""``resolute experiment config``."""

from __future__ import annotations

import click

from resolute.cli.display.output import print_json, print_yaml
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings


@click.command()
@click.argument("experiment_id", type=EXPERIMENT)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
@click.pass_obj
def config(settings: Settings, experiment_id: str, as_json: bool) -> None:
    """Print the complete config of an experiment, including defaults."""
    record = settings.services().experiments.get(experiment_id)
    if as_json:
        print_json(record.config)
    else:
        print_yaml(record.config)

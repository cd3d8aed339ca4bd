"""``resolute experiment download``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.checkpoint.fetch import DOWNLOADS, fetch
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.objects.checkpoint_ranking import ranked, with_validations
from resolute.client.schema.ordering import OrderBy
from resolute.client.schema.states import CheckpointState
from resolute.errors import NotFoundError


@click.command()
@click.argument("experiment_id", type=EXPERIMENT)
@click.option(
    "-o",
    "--output-dir",
    type=click.Path(path_type=Path),
    default=DOWNLOADS,
    show_default=True,
    help="Target directory; each checkpoint has a directory named after its UUID in it.",
)
@click.option(
    "--top-n", type=click.IntRange(min=1), default=1, show_default=True, help="How many checkpoints."
)
@click.option("--sort-by", metavar="METRIC", help="The validation metric to compare [the searcher's].")
@click.option(
    "--smaller-is-better",
    type=bool,
    metavar="BOOL",
    help="With --sort-by: whether smaller values are better.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the directories.")
@click.pass_obj
def download(
    settings: Settings,
    experiment_id: str,
    output_dir: Path,
    top_n: int,
    sort_by: str | None,
    smaller_is_better: bool | None,
    quiet: bool,
) -> None:
    """Download the best checkpoints of an experiment, of all its trials."""
    if (sort_by is None) != (smaller_is_better is None):
        raise click.UsageError("--sort-by and --smaller-is-better go together.")
    services = settings.services()
    experiment = services.experiments.get(experiment_id)
    items = with_validations(
        [
            checkpoint
            for checkpoint in services.checkpoints.of_experiment(experiment.uuid)
            if checkpoint.state is CheckpointState.COMPLETED
        ],
        services.trials.list(experiment.uuid),
        metrics=services.metrics,
    )
    if not items:
        raise NotFoundError(
            f"experiment {experiment.id} has no checkpoint: its script saved none, or all were deleted"
        )
    if sort_by is not None and all(item.value(sort_by) is None for item in items):
        raise NotFoundError(
            f"no checkpoint of experiment {experiment.id} has a validation with the metric {sort_by!r}; "
            f"`resolute experiment describe {experiment.id} --metrics` shows what was reported"
        )
    order = None if sort_by is None else OrderBy.ASCENDING if smaller_is_better else OrderBy.DESCENDING
    for item in ranked(items, experiment, sort_by=sort_by, order_by=order)[:top_n]:
        fetch(services, item.checkpoint, output_dir / item.checkpoint.uuid, quiet=quiet)

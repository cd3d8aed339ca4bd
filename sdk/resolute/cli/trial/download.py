"""``resolute trial download``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.checkpoint.fetch import fetch
from resolute.cli.options.identifiers import CHECKPOINT, TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.objects.checkpoint_ranking import ranked, with_validations
from resolute.client.schema.ordering import CheckpointSortBy, OrderBy
from resolute.client.schema.records import CheckpointRecord, TrialRecord
from resolute.client.services import Services
from resolute.errors import NotFoundError


@click.command()
@click.argument("trial_id", type=TRIAL)
@click.option("--best", is_flag=True, help="The checkpoint with the best validation.")
@click.option("--latest", is_flag=True, help="The checkpoint with the most steps.")
@click.option("--uuid", type=CHECKPOINT, help="The checkpoint with this UUID.")
@click.option(
    "-o", "--output-dir", type=click.Path(path_type=Path), help="Target directory [downloads/UUID]."
)
@click.option("--sort-by", metavar="METRIC", help="With --best: the metric to compare [the searcher's].")
@click.option(
    "--smaller-is-better",
    type=bool,
    metavar="BOOL",
    help="With --sort-by: whether smaller values are better.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the directory.")
@click.pass_obj
def download(  # noqa: PLR0913, PLR0917 - click hands over every option
    settings: Settings,
    trial_id: str,
    best: bool,
    latest: bool,
    uuid: str | None,
    output_dir: Path | None,
    sort_by: str | None,
    smaller_is_better: bool | None,
    quiet: bool,
) -> None:
    """Download a checkpoint of a trial."""
    if sum((best, latest, uuid is not None)) != 1:
        raise click.UsageError("Give exactly one of --best, --latest and --uuid.")
    if (sort_by is None) != (smaller_is_better is None) or (sort_by is not None and not best):
        raise click.UsageError("--sort-by and --smaller-is-better go together, and with --best.")
    services = settings.services()
    trial = services.trials.get(trial_id)
    if uuid is not None:
        record = _named(services, trial, uuid)
    elif latest:
        record = _first(services, trial, CheckpointSortBy.BATCH_NUMBER, OrderBy.DESCENDING)
    elif sort_by is None:
        record = _first(services, trial, None, None)
    else:
        record = _first(
            services, trial, sort_by, OrderBy.ASCENDING if smaller_is_better else OrderBy.DESCENDING
        )
    fetch(services, record, output_dir, quiet=quiet)


def _named(services: Services, trial: TrialRecord, uuid: str) -> CheckpointRecord:
    record = services.checkpoints.get(uuid)
    if record.trial_uuid != trial.uuid:
        raise NotFoundError(f"checkpoint {uuid} is not one of trial {trial.id}")
    return record


def _first(
    services: Services,
    trial: TrialRecord,
    sort_by: CheckpointSortBy | str | None,
    order_by: OrderBy | None,
) -> CheckpointRecord:
    experiment = services.experiments.get(trial.experiment_uuid)
    items = with_validations(services.checkpoints.of_trial(trial.uuid), [trial], metrics=services.metrics)
    if not items:
        raise NotFoundError(f"trial {trial.id} has no checkpoint: its script saved none, or all were deleted")
    metric = None if isinstance(sort_by, CheckpointSortBy) else sort_by
    if metric is not None and all(item.value(metric) is None for item in items):
        raise NotFoundError(
            f"no checkpoint of trial {trial.id} has a validation with the metric {metric!r}; "
            f"`resolute trial describe {trial.id} --metrics-summary` shows what was reported"
        )
    return ranked(items, experiment, sort_by=sort_by, order_by=order_by)[0].checkpoint

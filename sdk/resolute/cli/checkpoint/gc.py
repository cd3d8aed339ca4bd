"""``resolute checkpoint gc``."""

from __future__ import annotations

import click

from resolute.cli.options.confirmation import confirm
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings

_COUNT = click.IntRange(min=0)


@click.command()
@click.argument("experiment_id", type=EXPERIMENT)
@click.option("--save-experiment-best", type=_COUNT, metavar="N", help="Keep the best N of the experiment.")
@click.option("--save-trial-best", type=_COUNT, metavar="N", help="Keep the best N of each trial.")
@click.option("--save-trial-latest", type=_COUNT, metavar="N", help="Keep the latest N of each trial.")
@click.option("--dry-run", is_flag=True, help="Only print which checkpoints would be deleted.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def gc(
    settings: Settings,
    experiment_id: str,
    save_experiment_best: int | None,
    save_trial_best: int | None,
    save_trial_latest: int | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete the checkpoints of an ended experiment that a policy does not keep.

    Options override the config. Checkpoints that are pinned, that are versions of models, from which other
    trials started, or that a restored cluster has inherited are always kept.
    """
    experiments = settings.services().experiments
    policy = {
        "save_experiment_best": save_experiment_best,
        "save_trial_best": save_trial_best,
        "save_trial_latest": save_trial_latest,
    }
    doomed = experiments.collect_checkpoints(experiment_id, policy, preview=True)
    for uuid in doomed:
        click.echo(uuid)
    if dry_run or not doomed:
        click.echo(f"{len(doomed)} checkpoints would be deleted", err=True)
        return
    if not yes:
        confirm(f"Delete these {len(doomed)} checkpoints?")
    deleted = experiments.collect_checkpoints(experiment_id, policy, preview=False)
    click.echo(f"{len(deleted)} checkpoints are deleted", err=True)

"""``resolute run``: a script on slots, without a config."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from resolute.cli.experiment.create import Request, submit
from resolute.client.submission.config import config_text

_LAUNCH = ["-m", "determined.launch.torch_distributed", "--"]


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("arguments", metavar="[-- ARGS...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--slots", type=click.IntRange(min=1), default=1, show_default=True, help="Slots of the run.")
@click.option("--name", default="", help="Name of the experiment [that of the script].")
@click.option(
    "--metric", default="", metavar="NAME", help="Validation metric by which checkpoints are compared [loss]."
)
@click.option("--no-git", is_flag=True, help="Do not record the git commit and the uncommitted changes.")
@click.option("--detach", is_flag=True, help="Do not follow the log.")
@click.pass_context
def run(
    ctx: click.Context,
    script: Path,
    arguments: tuple[str, ...],
    slots: int,
    name: str,
    metric: str,
    no_git: bool,
    detach: bool,
) -> None:
    """Run SCRIPT with ARGS on slots of the cluster, as an experiment with one trial, and follow its log.

    The current directory is submitted, or the directory of a script that lies elsewhere. With several slots,
    torchrun starts the script once for each.
    """
    if script.suffix in {".yaml", ".yml", ".json"}:
        raise click.UsageError(f"{script} is a config: `resolute experiment create {script} .` submits it.")
    here = Path.cwd()
    inside = script.resolve().is_relative_to(here)
    directory = here if inside else script.resolve().parent
    path = script.resolve().relative_to(directory)
    command = ["python3", *(_LAUNCH if slots > 1 else []), path.as_posix(), *arguments]
    config = {
        "name": name or script.name,
        "entrypoint": shlex.join(command),
        "resources": {"slots_per_trial": slots},
        # Without a length the trial ends with its script.
        "searcher": {"name": "single", "metric": metric or "loss"},
        "max_restarts": 0,
    }
    request = Request(
        config=config_text(config), model_definition=directory, git=not no_git, names_metric=bool(metric)
    )
    submit(ctx, request, follow_it=not detach)

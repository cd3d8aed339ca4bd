"""``resolute tensorboard [start]``."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from resolute.cli.options.identifiers import EXPERIMENT, TRIALS
from resolute.cli.options.settings import Settings
from resolute.cli.registry.counterparts import COUNTERPARTS


class _TensorBoard(click.Command):
    """The command, also by the documented words: `tensorboard start`; the other words say what to do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Takes the word `start` away."""
        word = args[0] if args else ""
        if word == "help":
            args = ["--help"]
        elif word in COUNTERPARTS["tensorboard"]:
            ctx.fail(f"There is no `{ctx.command_path} {word}`: {COUNTERPARTS['tensorboard'][word]}.")
        return super().parse_args(ctx, args[1:] if word == "start" else args)


@click.command(cls=_TensorBoard)
@click.argument("experiment_ids", metavar="[EXPERIMENT]...", nargs=-1, type=EXPERIMENT)
@click.option(
    "-t", "--trial-ids", type=TRIALS, default=(), metavar="ID[,ID...]", help="Also the experiments of trials."
)
@click.option("--no-browser", is_flag=True, hidden=True)  # no browser is opened anyhow
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6006,
    show_default=True,
    help="Port; 0 for any free port.",
)
@click.pass_obj
def tensorboard(
    settings: Settings,
    experiment_ids: tuple[str, ...],
    trial_ids: tuple[str, ...],
    no_browser: bool,
    port: int,
) -> None:
    """Start TensorBoard with the event files of experiments; Ctrl-C stops it.

    It runs on this machine and reads the directory, which must be visible here. It needs the package
    tensorboard.
    """
    del no_browser
    if not experiment_ids and not trial_ids:
        raise click.UsageError("Name an experiment, or a trial with --trial-ids.")
    if importlib.util.find_spec("tensorboard") is None:
        raise click.ClickException("TensorBoard is not installed here: pip install tensorboard")
    services = settings.services()
    cluster = services.cluster.get().cluster_id
    keys = [*experiment_ids, *(services.trials.get(key).experiment_uuid for key in trial_ids)]
    experiments = {found.id: found for found in map(services.experiments.get, keys)}
    places = []
    for experiment in experiments.values():
        root = _root((experiment.config or {}).get("checkpoint_storage") or {}, label=f"{experiment.id}")
        places.append(
            (f"experiment{experiment.id}", root / cluster / f"tensorboard/experiment/{experiment.id}")
        )
    for name, path in places:
        if not path.is_dir():
            raise click.ClickException(f"{name} has no events here yet: {path} does not exist")
    # Several directories have names of their own; one goes by --logdir, which also finds what comes later.
    spec = ",".join(f"{name}:{path}" for name, path in places)
    where = ["--logdir", str(places[0][1])] if len(places) == 1 else ["--logdir_spec", spec]
    command = [sys.executable, "-m", "tensorboard.main", *where, "--port", str(port)]
    try:
        code = subprocess.run(command, check=False).returncode
    except KeyboardInterrupt:
        code = 0
    raise click.exceptions.Exit(code)


def _root(storage: dict[str, Any], *, label: str) -> Path:
    """Where a storage that is a directory lies on this machine."""
    if storage.get("type") == "shared_fs":
        return Path(storage["host_path"]) / (storage.get("storage_path") or "")
    if storage.get("type") == "directory":
        return Path(storage["container_path"])
    raise click.ClickException(
        f"experiment {label} keeps its checkpoints in a {storage.get('type')} store, which has no event files"
    )

"""``resolute init``: a config, a script and a `.detignore` to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from resolute.client.submission.ignore_rules import IGNORE_FILE
from resolute.errors import AlreadyExistsError

STARTERS = ("pytorch", "lightning", "hf", "keras", "core")
"""What there is to start from: folders of ``starters``."""


@click.command(name="init")
@click.argument("kind", type=click.Choice(STARTERS), default="core")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=Path())
def init(kind: str, directory: Path) -> None:
    """Write a config, a script and a `.detignore` into DIRECTORY, or into the current one.

    KIND: pytorch is a PyTorchTrial, lightning a LightningModule, hf a Trainer of Hugging Face, keras a
    model with fit, core a training loop of your own. No file is overwritten.
    """
    content = _content(kind)
    there = [name for name in content if (directory / name).exists()]
    if there:
        raise AlreadyExistsError(
            f"{directory.resolve()} has {', '.join(there)} already, and nothing was written; "
            f"name another directory: resolute init {kind} DIRECTORY"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        (directory / name).write_text(text)
        click.echo(f"wrote {directory / name}")
    place = "" if directory == Path() else f"cd {directory} && "
    click.echo(f"try it here:       {place}python3 train.py")
    click.echo(f"on the cluster:    {place}resolute experiment create config.yaml -f")


def _content(kind: str) -> dict[str, str]:
    root = files("resolute.cli") / "starters"
    contents = {path.name: path.read_text() for path in (root / kind).iterdir() if path.is_file()}
    contents[IGNORE_FILE] = (root / "detignore").read_text()
    return dict(sorted(contents.items()))

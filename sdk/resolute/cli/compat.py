"""``resolute compat install|uninstall``: makes ``import determined`` work in scripts outside of trials."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sysconfig
from pathlib import Path

import click

from resolute.cli.local_run import compat_paths

_FILE = "resolute_compat.pth"
"""Python reads it when it starts: a line of it is one more directory of modules."""


@click.command()
def install() -> None:
    """Make `import determined` reach Resolute in this Python environment.

    Trials do not need this. It is refused where the package `determined` itself is installed.
    """
    other = _other_package()
    if other:
        raise click.ClickException(
            f"the package determined is installed here ({other}) and is not overwritten, nor is its `det`; "
            "remove it first (pip uninstall determined), or use another environment"
        )
    paths = compat_paths()
    if not paths:
        raise click.ClickException(
            "this installation holds no package determined; install resolute-train again"
        )
    target = _target()
    target.write_text(f"{paths[0]}\n")
    click.echo(f"`import determined` reaches Resolute ({target})")


@click.command()
def uninstall() -> None:
    """Undo `resolute compat install`."""
    target = _target()
    if not target.exists():
        raise click.ClickException(f"there is nothing to undo: {target} does not exist")
    target.unlink()
    click.echo(f"`import determined` does not reach Resolute any more ({target} is removed)")


def _target() -> Path:
    return Path(sysconfig.get_path("purelib")) / _FILE


def _other_package() -> str:
    """What else is installed by the name ``determined``; empty for nothing."""
    try:
        return f"version {importlib.metadata.version('determined')}"
    except importlib.metadata.PackageNotFoundError:
        pass
    spec = importlib.util.find_spec("determined")
    if spec is None or spec.origin is None:
        return ""
    directory = Path(spec.origin).resolve().parent
    ours = {(Path(path) / "determined").resolve() for path in compat_paths()}
    return "" if directory in ours else str(directory)

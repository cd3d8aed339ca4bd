"""The config argument of commands about searches, checked by the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from resolute.api.searcher.v1 import search_spec_pb2
from resolute.cli.options.overrides import overrides_option
from resolute.cli.options.settings import Settings
from resolute.client.submission.config import config_text, parse_config, read_config, with_overrides
from resolute.errors import UnimplementedError


@dataclass(frozen=True)
class CheckedSearch:
    """The search of a config."""

    spec: search_spec_pb2.SearchSpec
    searcher: dict[str, Any]
    """The config's section, with defaults."""

    @property
    def units(self) -> str:
        """What lengths are counted in."""
        length = self.searcher.get("max_length")
        return next(iter(length)) if isinstance(length, dict) else "units"


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds CONFIG, ``--config`` and ``--template``."""
    command = click.option(
        "--template", default="", metavar="NAME", help="Use this template: the config overrides its fields."
    )(command)
    command = overrides_option(command)
    return click.argument("config", type=click.Path(path_type=Path))(command)


def checked_search(
    settings: Settings, config: Path, *, overrides: Sequence[str], template: str
) -> CheckedSearch:
    """Lets the cluster check a config, and gives its search.

    Args:
        settings: The global options.
        config: File of the config.
        overrides: ``KEY=VALUE`` texts.
        template: Name of a template; empty for none.

    Raises:
        UnimplementedError: The cluster is too old to tell.
    """
    text = read_config(config)
    if overrides:
        text = config_text(with_overrides(parse_config(text, name=str(config)), tuple(overrides)))
    checked = settings.services().experiments.validate(text, template=template)
    if checked.search is None:
        raise UnimplementedError("this cluster is too old to preview a search; upgrade it")
    for warning in checked.warnings:
        click.echo(f"warning: {warning}", err=True)
    return CheckedSearch(checked.search, checked.config["searcher"])

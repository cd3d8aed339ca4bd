"""``--config KEY=VALUE``: sets a field of a config on the command line."""

from __future__ import annotations

import click

from resolute.cli.options import completions

overrides_option = click.option(
    "--config",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a config field (repeatable).",
    shell_complete=completions.config_fields,
)

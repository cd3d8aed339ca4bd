"""Shell completion of numbers and names in the cluster, and of config fields.

Each completion asks the cluster once. If that fails it returns nothing, because a shell shows no errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from resolute.cli.options.settings import Settings

if TYPE_CHECKING:
    from resolute.client.services import Services

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
_MOST = 50
"""What fits on a screen."""
_NEWEST = 50
"""Experiments, and trials of one, that are asked for."""
_NEWEST_EXPERIMENTS = 5
"""Whose trials and checkpoints are offered."""


def _from_cluster(known: Callable[[Services], Iterable[tuple[object, str]]]) -> Completer:
    """Completes by a list of values, each with a word about it."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        options = ctx.find_root().params
        settings = Settings(master=options.get("master") or "", user=options.get("user") or "")
        try:
            items = (
                CompletionItem(str(value), help=about)
                for value, about in known(settings.services())
                if str(value).startswith(incomplete)
            )
            return list(itertools.islice(items, _MOST))
        except Exception:  # noqa: BLE001 - whatever it is, the command itself will say it
            return []
        finally:
            settings.close()

    return complete


def _experiments(services: Services) -> Iterator[tuple[object, str]]:
    return (
        (experiment.id, f"{experiment.name} {experiment.state.name}")
        for experiment in services.experiments.list(limit=_NEWEST)
    )


def _trials(services: Services) -> Iterator[tuple[object, str]]:
    for experiment in services.experiments.list(limit=_NEWEST_EXPERIMENTS):
        for trial in services.trials.list(experiment.uuid, order_by="number desc", limit=_NEWEST):
            yield trial.id, f"{experiment.name} {trial.state.name}"


def _models(services: Services) -> Iterator[tuple[object, str]]:
    from resolute.client.remote.models import ModelFilter

    return ((model.name, model.description) for model in services.models.list(ModelFilter()))


experiments = _from_cluster(_experiments)
"""Numbers of the newest experiments."""
trials = _from_cluster(_trials)
"""Numbers of the newest trials."""
models = _from_cluster(_models)
workspaces = _from_cluster(
    lambda services: ((workspace.name, "") for workspace in services.workspaces.list())
)
users = _from_cluster(lambda services: ((user.name, user.role.name) for user in services.access.list_users()))
templates = _from_cluster(
    lambda services: ((template.name, "") for template in services.cluster.list_templates())
)


def projects(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes projects of the workspace that the command line names before."""
    workspace = ctx.params.get("workspace")
    if not workspace:
        return []
    listed = _from_cluster(
        lambda services: ((project.name, "") for project in services.workspaces.list_projects(workspace))
    )
    return listed(ctx, parameter, incomplete)


def config_fields(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the fields of the config file that the command line names, with their values."""
    from resolute.client.submission.config import parse_config, read_config

    # Behind an option without its value click leaves the arguments as they were typed.
    config = ctx.params.get("config") or next((word for word in ctx.args if not word.startswith("-")), "")
    try:
        fields = parse_config(read_config(Path(config)))
    except Exception:  # noqa: BLE001 - whatever is wrong with the file, the command itself will say it
        return []
    return [
        CompletionItem(f"{path}=", help=str(value))
        for path, value in _leaves(fields)
        if path.startswith(incomplete)
    ]


def _leaves(fields: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value

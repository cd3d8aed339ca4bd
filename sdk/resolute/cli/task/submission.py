"""Submits a task as an experiment of one trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from resolute.cli.options.includes import includes_option
from resolute.cli.options.overrides import overrides_option
from resolute.client.services import Services
from resolute.client.submission.config import parse_config, read_config, with_overrides

_GRACE_SECONDS = 30
"""Between the request to leave its slots, which few commands know, and the end of its processes."""


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """The options of a task, without the command that it runs."""

    config: dict[str, Any]
    """Its own config."""
    directory: Path | None
    """What is submitted; None for nothing."""
    includes: tuple[Path, ...]
    workspace: str | None
    detach: bool


def task_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of commands that start tasks, which the command gets as ``task``."""

    @click.option("--config-file", type=click.Path(path_type=Path), help="A config: a YAML file.")
    @overrides_option
    @click.option(
        "-c",
        "--context",
        "directory",
        type=click.Path(path_type=Path),
        help="Submit this directory: the task runs in a copy of it.",
    )
    @includes_option
    @click.option("-w", "--workspace-name", "workspace", help="The workspace that it belongs to.")
    @click.option("-d", "--detach", is_flag=True, help="Only start it.")
    @wraps(command)
    def wrapped(
        *args: Any,
        config_file: Path | None,
        overrides: tuple[str, ...],
        directory: Path | None,
        includes: tuple[Path, ...],
        workspace: str | None,
        detach: bool,
        **options: Any,
    ) -> Any:
        config = {} if config_file is None else parse_config(read_config(config_file), name=str(config_file))
        task = TaskOptions(
            config=with_overrides(config, overrides),
            directory=directory,
            includes=includes,
            workspace=workspace,
            detach=detach,
        )
        return command(*args, task=task, **options)

    return wrapped


def whole_config(
    services: Services, task: TaskOptions, *, description: str, entrypoint: str
) -> dict[str, Any]:
    """The config of a task's experiment: what the task's own config says, under what makes it a task.

    Raises:
        click.UsageError: The workspace has no project, and every experiment belongs to one.
    """
    config = {"description": description, "preemption_timeout": _GRACE_SECONDS, **task.config}
    if task.workspace is not None:
        project = next(iter(services.workspaces.list_projects(task.workspace)), None)
        if project is None:
            raise click.UsageError(f"Workspace {task.workspace} has no project; create one first.")
        config |= {"workspace": task.workspace, "project": project.name}
    return {
        **config,
        "name": config.get("name") or config["description"],
        "entrypoint": entrypoint,
        "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1}},
        "max_restarts": 0,
    }

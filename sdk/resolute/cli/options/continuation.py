"""The shared part of commands that continue something: they show what is kept and ask for confirmation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from resolute.cli.display.experiment.follow import follow
from resolute.cli.display.experiment.outcome import exit_by_state
from resolute.cli.options.confirmation import confirm
from resolute.cli.options.overrides import overrides_option
from resolute.cli.options.settings import Settings
from resolute.client.submission.config import config_text, parse_config, read_config, with_overrides

if TYPE_CHECKING:
    from resolute.client.remote.continuations import Continuation
    from resolute.client.services import Services

_MOST_TRIALS = 10  # lines that a person still reads


@dataclass(frozen=True)
class ContinuationOptions:
    """The options of a command that continues something."""

    config: str
    """Fields of the config to change, for the service; empty for none."""
    yes: bool
    """Whether not to ask."""
    follow_it: bool
    """Whether to follow it to its end."""


def continuation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds ``--config-file``, ``--config``, ``--yes``, ``--follow``; the command gets them as ``choices``."""

    @click.option(
        "--config-file", type=click.Path(path_type=Path), help="Set the config fields in this YAML file."
    )
    @overrides_option
    @click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
    @click.option(
        "-f",
        "--follow",
        "--follow-first-trial",
        "follow_it",
        is_flag=True,
        help="Follow the log until the experiment ends.",
    )
    @wraps(command)
    def run(
        *args: Any,
        config_file: Path | None,
        overrides: tuple[str, ...],
        yes: bool,
        follow_it: bool,
        **kwargs: Any,
    ) -> Any:
        choices = ContinuationOptions(_changes(config_file, overrides), yes, follow_it)
        return command(*args, choices=choices, **kwargs)

    return run


def confirm_and_continue(
    ctx: click.Context,
    call: Callable[[Services], Callable[..., Continuation]],
    key: str,
    choices: ContinuationOptions,
    *,
    title: str,
    new: bool,
) -> None:
    """Says what will be kept, asks whether that is wanted, and does it.

    Args:
        ctx: The command's context.
        call: Takes the call from the services.
        key: What is to go on.
        choices: The person's choices.
        title: What is about to happen.
        new: Whether a new experiment begins.

    Raises:
        click.ClickException: It is not wanted.
    """
    services = ctx.ensure_object(Settings).services()
    plan = call(services)(key, config=choices.config, validate_only=True)
    click.echo(title, err=True)
    for line in _lines(plan, new=new):
        click.echo(f"  {line}", err=True)
    if not choices.yes:
        confirm("Go on?")
    experiment = call(services)(key, config=choices.config).experiment
    assert experiment is not None
    click.echo(f"{'Created' if new else 'Continued'} experiment {experiment.id}")
    if choices.follow_it:
        exit_by_state(ctx, follow(services, experiment, continued=not new))


def _changes(config_file: Path | None, overrides: tuple[str, ...]) -> str:
    if config_file is None and not overrides:
        return ""
    fields = {} if config_file is None else parse_config(read_config(config_file), name=str(config_file))
    return config_text(with_overrides(fields, overrides))


def _lines(plan: Continuation, *, new: bool) -> Iterator[str]:
    yield f"weights:       {_weights(plan, new=new)}"
    yield f"step counter:  {_steps(plan, new=new)}"
    yield f"search state:  {_search(plan, new=new)}"
    if plan.changed_fields:
        yield f"config:        changes {', '.join(plan.changed_fields)}"
    for trial in [] if new else plan.trials[:_MOST_TRIALS]:
        where = (
            f"continues at step {trial.trial.steps_completed}"
            if trial.keeps_weights
            else "starts from the beginning"
        )
        yield f"trial {trial.trial.id} ({trial.trial.state.name}) {where}"
    if not new and len(plan.trials) > _MOST_TRIALS:
        yield f"… and {len(plan.trials) - _MOST_TRIALS} more trials"
    for warning in plan.warnings:
        yield f"warning: {warning}"


def _weights(plan: Continuation, *, new: bool) -> str:
    if not new:
        return "kept: every trial continues from its newest checkpoint"
    if not plan.trials:
        return "not kept: every trial starts from the beginning"
    trial = plan.trials[0].trial
    return f"kept: from checkpoint {trial.latest_checkpoint} of trial {trial.id}"


def _steps(plan: Continuation, *, new: bool) -> str:
    if not new:
        return "kept: the same trials continue their step counters"
    if not plan.trials:
        return "begins at zero"
    return f"begins at zero, in a new trial; {plan.trials[0].trial.steps_completed} steps were made before"


def _search(plan: Continuation, *, new: bool) -> str:
    if new:
        return "not kept: a new search begins"
    if not plan.keeps_search:
        return "there was none: the search begins now"
    given = [
        f"{limit} {what}"
        for limit, what in ((plan.max_trials, "trials"), (plan.max_length, "as the greatest length"))
        if limit is not None
    ]
    return "kept" + (f", with {' and '.join(given)} from now on" if given else ", as it is")

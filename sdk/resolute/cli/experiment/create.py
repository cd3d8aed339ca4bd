"""``resolute experiment create``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click

from resolute.cli.display.experiment.follow import follow
from resolute.cli.display.experiment.outcome import exit_by_state, tell_of_no_metric
from resolute.cli.display.output import json_option, print_json
from resolute.cli.options.includes import includes_option
from resolute.cli.options.overrides import overrides_option
from resolute.cli.options.settings import Settings
from resolute.client.remote.experiments import Created, Submission
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentKind
from resolute.client.services import Services
from resolute.client.submission.config import config_text, parse_config, read_config, with_overrides
from resolute.client.submission.git_state import GitState, known_secrets, read_git_state
from resolute.client.submission.packing import configured_limit, pack
from resolute.contracts.sizes import human_size

_LARGE = 10 << 20
"""From this many bytes of code on, the size is printed."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments and options of the command."""

    config: str
    model_definition: Path | None
    includes: tuple[Path, ...] = ()
    template: str = ""
    paused: bool = False
    test_mode: bool = False
    kind: ExperimentKind = ExperimentKind.SEARCH
    git: bool = True
    """Whether the commit and the changes of the work tree are recorded."""
    names_metric: bool = True
    """Whether its author named the metric, so that a training without it is no success."""


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("model_definition", metavar="[DIR|FILE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "-f",
    "--follow",
    "--follow-first-trial",
    "follow_it",
    is_flag=True,
    help="Follow the log until the experiment ends.",
)
@click.option("--paused", is_flag=True, help="Create the experiment paused.")
@click.option("-t", "--test-mode", "--test", is_flag=True, help="Train only one batch, and follow the log.")
@click.option("--local", is_flag=True, help="With --test-mode: run the entrypoint here, without a cluster.")
@includes_option
@overrides_option
@click.option(
    "--template", default="", metavar="NAME", help="Use this template: the config overrides its fields."
)
@click.option(
    "--no-git",
    is_flag=True,
    help="Do not record the git commit and the uncommitted changes [RESOLUTE_NO_GIT=1].",
)
@click.option(
    "-g",
    "--git",
    is_flag=True,
    hidden=True,
    expose_value=False,
    help="Older releases recorded git if asked to.",
)
@click.option(
    "--project_id", "--project-id", "project_id", type=click.IntRange(min=1), help="Number of the project."
)
@json_option
@click.pass_context
def create(  # noqa: PLR0913, PLR0917 - click hands over every option
    ctx: click.Context,
    config: Path,
    model_definition: Path | None,
    follow_it: bool,
    paused: bool,
    test_mode: bool,
    local: bool,
    includes: tuple[Path, ...],
    overrides: tuple[str, ...],
    template: str,
    no_git: bool,
    project_id: int | None,
    as_json: bool,
) -> None:
    """Submit an experiment: CONFIG is a YAML file, DIR|FILE is the code to run.

    Without DIR|FILE and -i, the directory of CONFIG is submitted.
    With -f or -t it exits 0 only if the experiment completes.
    """
    if paused and (follow_it or test_mode):
        raise click.UsageError("--paused cannot be combined with --follow or --test-mode.")
    if local and not test_mode:
        raise click.UsageError("--local needs --test-mode: only tests run without a cluster.")
    if as_json and (follow_it or test_mode):
        raise click.UsageError("--json cannot be combined with --follow or --test-mode.")
    text = read_config(config)
    fields = with_overrides(parse_config(text, name=str(config)), overrides) if overrides else None
    if project_id is not None:
        project = ctx.ensure_object(Settings).services().workspaces.get_project(project_id)
        fields = {
            **(fields or parse_config(text, name=str(config))),
            "workspace": project.workspace,
            "project": project.name,
        }
    if fields is not None:
        text = config_text(fields)
    if model_definition is None and not includes:
        model_definition = config.parent
        click.echo(f"no DIR is given: submitting {model_definition.resolve()}, where the config is", err=True)
    request = Request(
        config=text,
        model_definition=model_definition,
        includes=includes,
        template=template,
        paused=paused,
        test_mode=test_mode,
        git=not no_git,
    )
    if local:
        _run_locally(ctx, request)
    else:
        submit(ctx, request, follow_it=follow_it or test_mode, as_json=as_json)


def submit(
    ctx: click.Context, request: Request, *, follow_it: bool, as_json: bool = False
) -> ExperimentRecord:
    """Submits an experiment and says so; returns it.

    Args:
        ctx: The command's context.
        request: The experiment.
        follow_it: Whether to follow it to its end.
        as_json: Whether to print it as JSON.
    """
    services = ctx.ensure_object(Settings).services()
    limit = configured_limit(os.environ)
    with pack(request.model_definition, request.includes, limit=limit) as archive:
        if archive.content_size >= _LARGE:
            size = human_size(archive.content_size)
            click.echo(
                f"{size} of code are submitted (largest: {archive.largest}); "
                "a file .detignore can leave files out",
                err=True,
            )
        submission = Submission(
            config=request.config,
            template=request.template,
            paused=request.paused,
            test_mode=request.test_mode,
            kind=request.kind,
            source=_source(services, request),
        )
        created: Created = services.experiments.create(submission, archive)
    for warning in created.warnings:
        click.echo(f"warning: {warning}", err=True)
    searches = request.kind is ExperimentKind.SEARCH
    if archive.entries == 0 and searches:
        click.echo("no code was submitted: the directory holds no files", err=True)
    if as_json:
        print_json(created.experiment)
    else:
        done = "Created experiment" if searches else "Started task"
        click.echo(f"{done} {created.experiment.id}")
    if follow_it:
        ended = follow(services, created.experiment)
        if request.names_metric:
            tell_of_no_metric(ctx, services, ended)
        exit_by_state(ctx, ended, warned_too=request.names_metric)
    return created.experiment


def _source(services: Services, request: Request) -> GitState | None:
    if not request.git:
        return None
    secrets = known_secrets(services.session.endpoint.token(), os.environ)
    return read_git_state(request.model_definition, secrets=secrets)


def _run_locally(ctx: click.Context, request: Request) -> None:
    from resolute.cli.local_run import run_locally

    if request.template:
        raise click.UsageError("--template needs a cluster, which --local does without.")
    code = run_locally(
        parse_config(request.config),
        model_definition=request.model_definition,
        includes=request.includes,
        limit=configured_limit(os.environ),
    )
    ctx.exit(0 if code == 0 else 1)

"""The grammar of the command line: every group with its commands. Their modules are loaded when they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from resolute.cli.registry.lazy import LazyCommand, LazyGroup
from resolute.cli.registry.plugins import plugin_commands

_COMMANDS = "resolute.cli.registry.commands"
_EXPERIMENT = "resolute.cli.experiment"
_TRIAL = "resolute.cli.trial"
_CHECKPOINT = "resolute.cli.checkpoint"
_MODEL = "resolute.cli.model"
_SEARCH = "resolute.cli.search"
_USER = "resolute.cli.accounts"
_WORKSPACE = "resolute.cli.accounts.workspaces"
_PROJECT = "resolute.cli.accounts.projects"

EXPERIMENT_COMMANDS = (
    LazyCommand(
        "create", "Submit an experiment: a config and a directory of code.", f"{_EXPERIMENT}.create:create"
    ),
    LazyCommand("list", "List experiments.", f"{_EXPERIMENT}.list:list_", ("ls",)),
    LazyCommand("describe", "Show experiments with their trials.", f"{_EXPERIMENT}.describe:describe"),
    LazyCommand("logs", "Show the logs of an experiment's first trial.", f"{_EXPERIMENT}.logs:logs"),
    LazyCommand("pause", "Let trials checkpoint and give their slots back.", f"{_EXPERIMENT}.change:pause"),
    LazyCommand("activate", "Let paused experiments go on.", f"{_EXPERIMENT}.change:activate", ("unpause",)),
    LazyCommand(
        "cancel", "End experiments after their trials could checkpoint.", f"{_EXPERIMENT}.change:cancel"
    ),
    LazyCommand(
        "continue",
        "Let an experiment go on as itself, after its end too.",
        f"{_EXPERIMENT}.continue_:continue_",
    ),
    LazyCommand(
        "fork", "Create an experiment from another's config and code.", f"{_EXPERIMENT}.continue_:fork"
    ),
    LazyCommand("kill", "End experiments at once.", f"{_EXPERIMENT}.change:kill"),
    LazyCommand("wait", "Wait until an experiment ends.", f"{_EXPERIMENT}.wait:wait"),
    LazyCommand("archive", "Hide ended experiments from lists.", f"{_EXPERIMENT}.change:archive"),
    LazyCommand("unarchive", "Show archived experiments in lists again.", f"{_EXPERIMENT}.change:unarchive"),
    LazyCommand("delete", "Remove ended experiments with all they have.", f"{_EXPERIMENT}.change:delete"),
    LazyCommand(
        "list-trials", "List the trials of an experiment.", f"{_EXPERIMENT}.trials:list_trials", ("lt",)
    ),
    LazyCommand(
        "list-checkpoints",
        "List the checkpoints of an experiment.",
        f"{_EXPERIMENT}.checkpoints:list_checkpoints",
        ("lc",),
    ),
    LazyCommand("compare", "Put trials of experiments side by side.", f"{_EXPERIMENT}.compare:compare"),
    LazyCommand("move", "Move an experiment to another project.", f"{_EXPERIMENT}.change:move"),
    LazyCommand("set", "Change the name or the description of an experiment.", f"{_COMMANDS}:experiment_set"),
    LazyCommand("label", "Add labels to an experiment, or remove them.", f"{_COMMANDS}:experiment_label"),
    LazyCommand("config", "Print the whole config of an experiment.", f"{_EXPERIMENT}.config:config"),
    LazyCommand(
        "download-model-def",
        "Fetch the code that was submitted.",
        f"{_EXPERIMENT}.model_definition:download_model_definition",
    ),
)
"""Commands of ``resolute experiment``."""

EXPERIMENT_SET_COMMANDS = (
    LazyCommand("name", "Change the name of an experiment.", f"{_EXPERIMENT}.edit:set_name"),
    LazyCommand(
        "description", "Change the description of an experiment.", f"{_EXPERIMENT}.edit:set_description"
    ),
)
"""Commands of ``resolute experiment set``."""

EXPERIMENT_LABEL_COMMANDS = (
    LazyCommand("add", "Add a label to an experiment.", f"{_EXPERIMENT}.edit:add_label"),
    LazyCommand("remove", "Remove a label from an experiment.", f"{_EXPERIMENT}.edit:remove_label"),
)
"""Commands of ``resolute experiment label``."""

TRIAL_COMMANDS = (
    LazyCommand("describe", "Show trials with their runs.", f"{_TRIAL}.describe:describe"),
    LazyCommand("logs", "Show the logs of a trial.", f"{_TRIAL}.logs:logs"),
    LazyCommand(
        "continue", "Create an experiment from the weights of a trial.", f"{_TRIAL}.continue_:continue_"
    ),
    LazyCommand("kill", "End trials at once; their experiments go on.", f"{_TRIAL}.kill:kill"),
    LazyCommand("download", "Fetch a checkpoint of a trial.", f"{_TRIAL}.download:download"),
    LazyCommand("plot", "Draw a metric of a trial.", f"{_TRIAL}.plot:plot"),
    LazyCommand("export", "Write what trials reported as CSV or Parquet.", f"{_TRIAL}.export:export"),
)
"""Commands of ``resolute trial``."""

CHECKPOINT_COMMANDS = (
    LazyCommand(
        "list", "List the checkpoints of an experiment or a trial.", f"{_CHECKPOINT}.list:list_", ("ls",)
    ),
    LazyCommand("describe", "Show checkpoints with their files.", f"{_CHECKPOINT}.describe:describe"),
    LazyCommand("download", "Fetch the files of a checkpoint.", f"{_CHECKPOINT}.download:download"),
    LazyCommand(
        "verify", "Compare the files of checkpoints with their digests.", f"{_CHECKPOINT}.verify:verify"
    ),
    LazyCommand("pin", "Keep checkpoints from being deleted.", f"{_CHECKPOINT}.pin:pin"),
    LazyCommand("unpin", "Let pinned checkpoints go again.", f"{_CHECKPOINT}.pin:unpin"),
    LazyCommand("gc", "Delete what a policy does not keep.", f"{_CHECKPOINT}.gc:gc"),
    LazyCommand("delete", "Remove checkpoints.", f"{_CHECKPOINT}.delete:delete"),
    LazyCommand("rm", "Remove checkpoints, or some of their files.", f"{_CHECKPOINT}.delete:rm"),
)
"""Commands of ``resolute checkpoint``."""

MODEL_COMMANDS = (
    LazyCommand("create", "Create a model.", f"{_MODEL}.models:create"),
    LazyCommand("list", "List models.", f"{_MODEL}.models:list_", ("ls",)),
    LazyCommand("describe", "Show a model with its versions.", f"{_MODEL}.models:describe"),
    LazyCommand("set", "Change what is said of a model.", f"{_MODEL}.models:set_"),
    LazyCommand("archive", "Let a model take no more versions.", f"{_MODEL}.models:archive"),
    LazyCommand("unarchive", "Let a model take versions again.", f"{_MODEL}.models:unarchive"),
    LazyCommand("delete", "Remove a model; its checkpoints stay.", f"{_MODEL}.models:delete"),
    LazyCommand("register-version", "Make a checkpoint a version.", f"{_MODEL}.versions:register_version"),
    LazyCommand("list-versions", "List the versions of a model.", f"{_MODEL}.versions:list_versions"),
    LazyCommand("describe-version", "Show a version.", f"{_MODEL}.versions:describe_version"),
    LazyCommand("download", "Fetch the files of a version.", f"{_MODEL}.versions:download"),
    LazyCommand(
        "delete-version", "Remove a version; its checkpoint stays.", f"{_MODEL}.versions:delete_version"
    ),
)
"""Commands of ``resolute model``."""

TEMPLATE_COMMANDS = (
    LazyCommand("list", "List templates.", "resolute.cli.cluster.templates:list_", ("ls",)),
    LazyCommand("describe", "Print a template.", "resolute.cli.cluster.templates:describe"),
    LazyCommand("set", "Write a template from a file.", "resolute.cli.cluster.templates:set_"),
    LazyCommand("remove", "Remove a template.", "resolute.cli.cluster.templates:remove", ("rm",)),
)
"""Commands of ``resolute template``."""

SEARCH_COMMANDS = (
    LazyCommand("preview", "Show what a config's search would run.", f"{_SEARCH}.preview:preview"),
    LazyCommand("simulate", "Play a config's search in virtual time.", f"{_SEARCH}.simulate:simulate"),
    LazyCommand("replay", "Decide a search again from its log and compare.", f"{_SEARCH}.replay:replay"),
)
"""Commands of ``resolute search``."""

JOB_COMMANDS = (
    LazyCommand("list", "List the queue: who gets slots next.", "resolute.cli.cluster.jobs:list_", ("ls",)),
    LazyCommand("update", "Change an experiment's place in the queue.", "resolute.cli.cluster.jobs:update"),
)
"""Commands of ``resolute job``."""

STORAGE_COMMANDS = (
    LazyCommand("doctor", "Try a store of checkpoints out.", "resolute.cli.cluster.storage:doctor"),
)
"""Commands of ``resolute storage``."""

USER_COMMANDS = (
    LazyCommand("login", "Act as a user from now on.", f"{_USER}.login:login"),
    LazyCommand("logout", "Forget the token that a login got.", f"{_USER}.login:logout"),
    LazyCommand("whoami", "Print whom commands act as.", f"{_USER}.login:whoami"),
    LazyCommand("list", "List users.", f"{_USER}.users:list_", ("ls",)),
    LazyCommand("create", "Create a user.", f"{_USER}.users:create"),
    LazyCommand("set-role", "Change what a user may do.", f"{_USER}.users:set_role"),
    LazyCommand("activate", "Let a user in again.", f"{_USER}.users:activate"),
    LazyCommand("deactivate", "Let nobody act as a user any more.", f"{_USER}.users:deactivate"),
    LazyCommand("change-password", "Set a password.", f"{_USER}.users:change_password"),
)
"""Commands of ``resolute user``."""

TOKEN_COMMANDS = (
    LazyCommand("create", "Print a new token.", f"{_USER}.tokens:create"),
    LazyCommand("list", "List tokens.", f"{_USER}.tokens:list_", ("ls",)),
    LazyCommand("revoke", "End a token before its time.", f"{_USER}.tokens:revoke"),
)
"""Commands of ``resolute token``."""

WORKSPACE_COMMANDS = (
    LazyCommand("list", "List workspaces with what they use.", f"{_WORKSPACE}:list_", ("ls",)),
    LazyCommand("create", "Create a workspace.", f"{_WORKSPACE}:create"),
    LazyCommand("describe", "Show a workspace.", f"{_WORKSPACE}:describe"),
    LazyCommand("set-quota", "Bound what a workspace uses.", f"{_WORKSPACE}:set_quota"),
    LazyCommand("archive", "Let a workspace take no more experiments.", f"{_WORKSPACE}:archive"),
    LazyCommand("unarchive", "Let a workspace take experiments again.", f"{_WORKSPACE}:unarchive"),
    LazyCommand("delete", "Remove an empty workspace.", f"{_WORKSPACE}:delete"),
)
"""Commands of ``resolute workspace``."""

PROJECT_COMMANDS = (
    LazyCommand("list", "List the projects of a workspace.", f"{_PROJECT}:list_", ("ls",)),
    LazyCommand("create", "Create a project.", f"{_PROJECT}:create"),
    LazyCommand("describe", "Show a project.", f"{_PROJECT}:describe"),
    LazyCommand("set", "Change the texts of a project.", f"{_PROJECT}:set_"),
    LazyCommand("archive", "Let a project take no more experiments.", f"{_PROJECT}:archive"),
    LazyCommand("unarchive", "Let a project take experiments again.", f"{_PROJECT}:unarchive"),
    LazyCommand("delete", "Remove an empty project.", f"{_PROJECT}:delete"),
)
"""Commands of ``resolute project``."""

ROOT_COMMANDS = (
    LazyCommand(
        "experiment", "Submit experiments and lead them.", "resolute.cli.registry.commands:experiment", ("e",)
    ),
    LazyCommand(
        "trial", "Look at the trials of experiments.", "resolute.cli.registry.commands:trial", ("t",)
    ),
    LazyCommand(
        "checkpoint", "Find and fetch checkpoints.", "resolute.cli.registry.commands:checkpoint", ("c",)
    ),
    LazyCommand(
        "job", "Look at the queue and change its order.", "resolute.cli.registry.commands:job", ("j",)
    ),
    LazyCommand("model", "Keep checkpoints under names.", "resolute.cli.registry.commands:model", ("m",)),
    LazyCommand("storage", "Look at stores of checkpoints.", "resolute.cli.registry.commands:storage"),
    LazyCommand(
        "template", "Keep parts of configs to share.", "resolute.cli.registry.commands:template", ("tpl",)
    ),
    LazyCommand("search", "Try searches out, and check them.", "resolute.cli.registry.commands:search"),
    LazyCommand(
        "workspace",
        "Where experiments belong, and quotas.",
        "resolute.cli.registry.commands:workspace",
        ("w",),
    ),
    LazyCommand(
        "project",
        "Where experiments are kept in workspaces.",
        "resolute.cli.registry.commands:project",
        ("p",),
    ),
    LazyCommand(
        "user", "Users of the cluster, and who you are.", "resolute.cli.registry.commands:user", ("u",)
    ),
    LazyCommand("token", "Tokens that let programs in.", "resolute.cli.registry.commands:token"),
    LazyCommand("audit", "List who changed what.", "resolute.cli.accounts.audit:audit"),
    LazyCommand(
        "preview-search", "Show what a config's search would run.", f"{_SEARCH}.preview:preview_search"
    ),
    LazyCommand("tensorboard", "Start TensorBoard on experiments.", "resolute.cli.tensorboard:tensorboard"),
    LazyCommand("sync", "Send runs that were recorded off cluster.", "resolute.cli.sync:sync"),
    LazyCommand(
        "completion",
        "Print a script that completes commands in a shell.",
        "resolute.cli.completion:completion",
    ),
    LazyCommand(
        "version", "Print the versions of client and cluster.", "resolute.cli.cluster.version:version"
    ),
)
"""Commands of ``resolute`` that are always there."""


class RootGroup(LazyGroup):
    """The group of ``resolute`` itself: its own commands and those of plugins."""

    def entries(self) -> Sequence[LazyCommand]:
        """The commands, in the order of the help."""
        return (*ROOT_COMMANDS, *plugin_commands())

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; its errors become messages while it is still known which cluster they concern."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            from resolute.cli.failures import Failure, explain

            message = explain(error, ctx.obj)
            if message is None:
                raise
            raise Failure(message) from error


@click.group(cls=LazyGroup, entries=EXPERIMENT_COMMANDS)
def experiment() -> None:
    """Submit experiments and lead them."""


@click.group(name="set", cls=LazyGroup, entries=EXPERIMENT_SET_COMMANDS)
def experiment_set() -> None:
    """Change the name or the description of an experiment."""


@click.group(name="label", cls=LazyGroup, entries=EXPERIMENT_LABEL_COMMANDS)
def experiment_label() -> None:
    """Add labels to an experiment, or remove them."""


@click.group(cls=LazyGroup, entries=TRIAL_COMMANDS)
def trial() -> None:
    """Look at the trials of experiments."""


@click.group(cls=LazyGroup, entries=CHECKPOINT_COMMANDS)
def checkpoint() -> None:
    """Find and fetch checkpoints."""


@click.group(cls=LazyGroup, entries=JOB_COMMANDS)
def job() -> None:
    """Look at the queue and change its order."""


@click.group(cls=LazyGroup, entries=STORAGE_COMMANDS)
def storage() -> None:
    """Look at stores of checkpoints."""


@click.group(cls=LazyGroup, entries=MODEL_COMMANDS)
def model() -> None:
    """Keep checkpoints under names, as versions that nothing deletes."""


@click.group(cls=LazyGroup, entries=TEMPLATE_COMMANDS)
def template() -> None:
    """Keep parts of configs to share."""


@click.group(cls=LazyGroup, entries=SEARCH_COMMANDS)
def search() -> None:
    """Try searches out, and check them."""


@click.group(cls=LazyGroup, entries=WORKSPACE_COMMANDS)
def workspace() -> None:
    """Where experiments belong, and what they may use together."""


@click.group(cls=LazyGroup, entries=PROJECT_COMMANDS)
def project() -> None:
    """Where experiments are kept within a workspace."""


@click.group(cls=LazyGroup, entries=USER_COMMANDS)
def user() -> None:
    """Users of the cluster, and who you are."""


@click.group(cls=LazyGroup, entries=TOKEN_COMMANDS)
def token() -> None:
    """Tokens that let programs in."""

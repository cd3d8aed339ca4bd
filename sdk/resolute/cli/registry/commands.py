"""The table of the command line: every group with its commands. A command's module is loaded when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from resolute.cli.registry.counterparts import COUNTERPARTS
from resolute.cli.registry.foreign_words import FOREIGN_WORDS
from resolute.cli.registry.lazy import LazyCommand, LazyGroup
from resolute.cli.registry.refused_options import explained
from resolute.cli.registry.sections import ADMIN, SAME, SECTIONS

_COMMANDS = "resolute.cli.registry.commands"
_ACCOUNTS = "resolute.cli.registry.accounts"
_CLUSTER = "resolute.cli.registry.cluster"
_TASKS = "resolute.cli.registry.tasks"
_EXPERIMENT = "resolute.cli.experiment"
_EXPERIMENT_VIEW = "resolute.cli.experiment.views"
_TRIAL = "resolute.cli.trial"
_CHECKPOINT = "resolute.cli.checkpoint"
_MODEL = "resolute.cli.model"
_SEARCH = "resolute.cli.search"
_INSIGHT = "resolute.cli.insight"

EXPERIMENT_COMMANDS = (
    LazyCommand(
        "create", "Submit an experiment: a config and a directory of code.", f"{_EXPERIMENT}.create:create"
    ),
    LazyCommand("list", "List experiments.", f"{_EXPERIMENT_VIEW}.list:list_", ("ls",)),
    LazyCommand("describe", "Show experiments with their trials.", f"{_EXPERIMENT_VIEW}.describe:describe"),
    LazyCommand("logs", "Show the logs of an experiment's first trial.", f"{_EXPERIMENT_VIEW}.logs:logs"),
    LazyCommand(
        "pause", "Pause experiments: trials checkpoint and free their slots.", f"{_EXPERIMENT}.change:pause"
    ),
    LazyCommand("activate", "Resume paused experiments.", f"{_EXPERIMENT}.change:activate", ("unpause",)),
    LazyCommand(
        "cancel", "Cancel experiments: trials checkpoint first, then stop.", f"{_EXPERIMENT}.change:cancel"
    ),
    LazyCommand(
        "continue",
        "Continue an experiment, even after its end.",
        f"{_EXPERIMENT}.continue_:continue_",
    ),
    LazyCommand(
        "fork", "Create an experiment from another's config and code.", f"{_EXPERIMENT}.continue_:fork"
    ),
    LazyCommand("kill", "Stop experiments immediately.", f"{_EXPERIMENT}.change:kill"),
    LazyCommand("wait", "Wait until an experiment ends.", f"{_EXPERIMENT}.wait:wait"),
    LazyCommand("archive", "Hide ended experiments from lists.", f"{_EXPERIMENT}.change:archive"),
    LazyCommand("unarchive", "Show archived experiments in lists again.", f"{_EXPERIMENT}.change:unarchive"),
    LazyCommand("delete", "Delete ended experiments and all their data.", f"{_EXPERIMENT}.change:delete"),
    LazyCommand(
        "delete-tb-files",
        "Delete the TensorBoard files of an experiment.",
        f"{_EXPERIMENT}.change:delete_tensorboard_files",
    ),
    LazyCommand(
        "list-trials", "List the trials of an experiment.", f"{_EXPERIMENT_VIEW}.trials:list_trials", ("lt",)
    ),
    LazyCommand(
        "list-checkpoints",
        "List the checkpoints of an experiment.",
        f"{_EXPERIMENT_VIEW}.checkpoints:list_checkpoints",
        ("lc",),
    ),
    LazyCommand("compare", "Compare the trials of experiments.", f"{_EXPERIMENT_VIEW}.compare:compare"),
    LazyCommand("move", "Move an experiment to another project.", f"{_EXPERIMENT}.change:move"),
    LazyCommand("set", "Change a property of an experiment.", f"{_COMMANDS}:experiment_set"),
    LazyCommand("label", "Add labels to an experiment, or remove them.", f"{_COMMANDS}:experiment_label"),
    LazyCommand("config", "Print the complete config of an experiment.", f"{_EXPERIMENT_VIEW}.config:config"),
    LazyCommand(
        "download", "Download the best checkpoints of an experiment.", f"{_EXPERIMENT}.download:download"
    ),
    LazyCommand(
        "download-model-def",
        "Download the submitted code.",
        f"{_EXPERIMENT}.model_definition:download_model_definition",
    ),
)
"""Commands of ``resolute experiment``."""

EXPERIMENT_SET_COMMANDS = (
    LazyCommand("name", "Change the name of an experiment.", f"{_EXPERIMENT}.edit:set_name"),
    LazyCommand(
        "description", "Change the description of an experiment.", f"{_EXPERIMENT}.edit:set_description"
    ),
    LazyCommand("priority", "Change the priority of an experiment.", f"{_EXPERIMENT}.edit:set_priority"),
    LazyCommand("weight", "Change the weight of an experiment.", f"{_EXPERIMENT}.edit:set_weight"),
    LazyCommand("notes", "Change the notes of an experiment.", f"{_EXPERIMENT}.edit:set_notes"),
    LazyCommand("gc-policy", "Delete the checkpoints that a policy does not keep.", f"{_CHECKPOINT}.gc:gc"),
    LazyCommand("max-slots", "Limit the slots of an experiment.", f"{_EXPERIMENT}.edit:set_max_slots"),
)
"""Commands of ``resolute experiment set``."""

EXPERIMENT_LABEL_COMMANDS = (
    LazyCommand("add", "Add a label to an experiment.", f"{_EXPERIMENT}.edit:add_label"),
    LazyCommand("remove", "Remove a label from an experiment.", f"{_EXPERIMENT}.edit:remove_label"),
)
"""Commands of ``resolute experiment label``."""

TRIAL_COMMANDS = (
    LazyCommand("list", "List the trials of an experiment.", f"{_TRIAL}.list:list_", ("ls",)),
    LazyCommand("describe", "Show trials with their runs.", f"{_TRIAL}.describe:describe"),
    LazyCommand("logs", "Show the logs of a trial.", f"{_TRIAL}.logs:logs"),
    LazyCommand(
        "continue", "Create an experiment from the weights of a trial.", f"{_TRIAL}.continue_:continue_"
    ),
    LazyCommand(
        "support-bundle",
        "Write an archive with all that is known of a trial.",
        f"{_TRIAL}.support_bundle:support_bundle",
    ),
    LazyCommand("machine", "Show what the machines of a trial do.", f"{_TRIAL}.machine:machine"),
    LazyCommand("files", "List or fetch the files that are held of a failed run.", f"{_TRIAL}.files:files"),
    LazyCommand("kill", "Stop trials immediately; their experiments continue.", f"{_TRIAL}.kill:kill"),
    LazyCommand("download", "Download a checkpoint of a trial.", f"{_TRIAL}.download:download"),
    LazyCommand("plot", "Plot a metric of a trial.", f"{_TRIAL}.plot:plot"),
    LazyCommand("media", "Show or fetch the images, tables and so on of a trial.", f"{_TRIAL}.media:media"),
    LazyCommand("export", "Export the metrics of trials as CSV or Parquet.", f"{_TRIAL}.export:export"),
)
"""Commands of ``resolute trial``."""

CHECKPOINT_COMMANDS = (
    LazyCommand(
        "list", "List the checkpoints of an experiment or a trial.", f"{_CHECKPOINT}.list:list_", ("ls",)
    ),
    LazyCommand("describe", "Show checkpoints with their files.", f"{_CHECKPOINT}.describe:describe"),
    LazyCommand("download", "Download the files of a checkpoint.", f"{_CHECKPOINT}.download:download"),
    LazyCommand(
        "verify", "Verify the files of checkpoints against their digests.", f"{_CHECKPOINT}.verify:verify"
    ),
    LazyCommand("pin", "Protect checkpoints from deletion.", f"{_CHECKPOINT}.pin:pin"),
    LazyCommand("unpin", "Remove the protection of pinned checkpoints.", f"{_CHECKPOINT}.pin:unpin"),
    LazyCommand("gc", "Delete the checkpoints that a policy does not keep.", f"{_CHECKPOINT}.gc:gc"),
    LazyCommand("delete", "Delete checkpoints.", f"{_CHECKPOINT}.delete:delete"),
    LazyCommand("rm", "Delete checkpoints, or some of their files.", f"{_CHECKPOINT}.delete:rm"),
)
"""Commands of ``resolute checkpoint``."""

MODEL_COMMANDS = (
    LazyCommand("create", "Create a model.", f"{_MODEL}.models:create"),
    LazyCommand("list", "List models.", f"{_MODEL}.models:list_", ("ls",)),
    LazyCommand("describe", "Show a model with its versions.", f"{_MODEL}.models:describe"),
    LazyCommand("set", "Change the name, description and other fields of a model.", f"{_MODEL}.models:set_"),
    LazyCommand("move", "Move a model to another workspace.", f"{_MODEL}.models:move"),
    LazyCommand("archive", "Archive a model: it accepts no more versions.", f"{_MODEL}.models:archive"),
    LazyCommand("unarchive", "Unarchive a model: it accepts versions again.", f"{_MODEL}.models:unarchive"),
    LazyCommand("delete", "Delete a model; its checkpoints are kept.", f"{_MODEL}.models:delete"),
    LazyCommand(
        "register-version", "Register a checkpoint as a version.", f"{_MODEL}.versions:register_version"
    ),
    LazyCommand("list-versions", "List the versions of a model.", f"{_MODEL}.versions:list_versions"),
    LazyCommand("describe-version", "Show a version.", f"{_MODEL}.versions:describe_version"),
    LazyCommand("download", "Download the files of a version.", f"{_MODEL}.versions:download"),
    LazyCommand(
        "delete-version", "Delete a version; its checkpoint is kept.", f"{_MODEL}.versions:delete_version"
    ),
)
"""Commands of ``resolute model``."""

SEARCH_COMMANDS = (
    LazyCommand("preview", "Show what a config's search would run.", f"{_SEARCH}.preview:preview"),
    LazyCommand("simulate", "Simulate a config's search in virtual time.", f"{_SEARCH}.simulate:simulate"),
    LazyCommand(
        "replay", "Replay a search from its log and compare the decisions.", f"{_SEARCH}.replay:replay"
    ),
    LazyCommand(
        "importance", "Show which hyperparameters matter for the metric.", f"{_SEARCH}.importance:importance"
    ),
    LazyCommand("whatif", "Run another search on recorded learning curves.", f"{_SEARCH}.what_if:whatif"),
)
"""Commands of ``resolute search``."""

EXPLAIN_COMMANDS = (
    LazyCommand("trial", "Explain why a trial is in its state.", f"{_INSIGHT}.explain:trial", ("t",)),
    LazyCommand(
        "experiment", "Explain what an experiment does next.", f"{_INSIGHT}.explain:experiment", ("e",)
    ),
)
"""Commands of ``resolute explain``."""

IMPORT_COMMANDS = (
    LazyCommand("determined", "Import a Determined cluster.", "resolute.cli.imports.determined:determined"),
    LazyCommand("find", "Show where something imported is now.", "resolute.cli.imports.moved:find"),
    LazyCommand("table", "List everything imported, old and new.", "resolute.cli.imports.moved:table"),
)
"""Commands of ``resolute import``."""

COMPAT_COMMANDS = (
    LazyCommand("install", "Make `import determined` reach Resolute.", "resolute.cli.compat:install"),
    LazyCommand("uninstall", "Undo `resolute compat install`.", "resolute.cli.compat:uninstall"),
)
"""Commands of ``resolute compat``."""

CONFIG_COMMANDS = (
    LazyCommand("set", "Set a default.", "resolute.cli.config:set_"),
    LazyCommand("get", "Print a default.", "resolute.cli.config:get"),
    LazyCommand("list", "List all defaults.", "resolute.cli.config:list_", ("ls",)),
    LazyCommand("set-context", "Give a cluster a name.", "resolute.cli.config:set_context"),
    LazyCommand("get-contexts", "List the named clusters.", "resolute.cli.config:get_contexts"),
    LazyCommand("delete-context", "Remove the name of a cluster.", "resolute.cli.config:delete_context"),
)
"""Commands of ``resolute config``."""

ROOT_COMMANDS = (
    LazyCommand("experiment", "Submit and manage experiments.", f"{_COMMANDS}:experiment", ("e", "exp")),
    LazyCommand("init", "Write a config and a script to start from.", "resolute.cli.init:init"),
    LazyCommand("run", "Run a script on slots, without a config.", f"{_EXPERIMENT}.run:run"),
    LazyCommand("logs", "Show the logs of an experiment's first trial.", f"{_EXPERIMENT}.views.logs:logs"),
    LazyCommand("trial", "Inspect the trials of experiments.", f"{_COMMANDS}:trial", ("t",)),
    LazyCommand(
        "checkpoint",
        "List, download and manage checkpoints.",
        f"{_COMMANDS}:checkpoint",
        ("c",),
    ),
    LazyCommand("job", "Show the job queue and change its order.", f"{_CLUSTER}:job", ("j",)),
    LazyCommand(
        "model",
        "Manage models: named versions of checkpoints.",
        f"{_COMMANDS}:model",
        ("m",),
    ),
    LazyCommand("storage", "Test checkpoint stores.", f"{_CLUSTER}:storage"),
    LazyCommand(
        "template",
        "Manage templates: shared parts of configs.",
        f"{_CLUSTER}:template",
        ("tpl",),
    ),
    LazyCommand("alert", "Manage alerts: which events notify whom.", f"{_CLUSTER}:alert"),
    LazyCommand(
        "config-policies",
        "Manage what admins decide for configs.",
        f"{_CLUSTER}:config_policies",
        ("cp",),
    ),
    LazyCommand("agent", "Show the machines of the cluster.", f"{_CLUSTER}:agent", ("a",)),
    LazyCommand("slot", "Show the slots of the cluster.", f"{_CLUSTER}:slot", ("s",)),
    LazyCommand("resource-pool", "Show the resource pools.", f"{_CLUSTER}:resource_pool", ("rp",)),
    LazyCommand("master", "Show the cluster as a whole.", f"{_CLUSTER}:master"),
    LazyCommand("command", "Run commands on slots of the cluster.", f"{_TASKS}:command", ("cmd",)),
    LazyCommand("task", "Show and stop trials, as tasks.", f"{_TASKS}:task"),
    LazyCommand("dev", "Call the services as a program does.", f"{_CLUSTER}:dev"),
    LazyCommand("search", "Preview, simulate and replay searches.", f"{_COMMANDS}:search"),
    LazyCommand("top", "Show what the slots are doing now.", "resolute.cli.cluster.top:top"),
    LazyCommand("open", "Open the HTTP address of the cluster.", "resolute.cli.cluster.open:open_"),
    LazyCommand("cost", "Show slot-hours and GPU-hours.", f"{_INSIGHT}.cost:cost"),
    LazyCommand("diff", "Show what differs between two trials or runs.", f"{_INSIGHT}.diff:diff"),
    LazyCommand(
        "reproduce", "Run a trial again without its cluster, and compare.", f"{_INSIGHT}.reproduce:reproduce"
    ),
    LazyCommand("trace", "Show what a run spent its time on.", f"{_INSIGHT}.trace:trace"),
    LazyCommand(
        "promote", "Continue a trial from its checkpoint on another cluster.", f"{_INSIGHT}.promote:promote"
    ),
    LazyCommand("explain", "Explain why trials and experiments are in their states.", f"{_COMMANDS}:explain"),
    LazyCommand(
        "workspace",
        "Manage workspaces, their quotas and the roles of users there.",
        f"{_ACCOUNTS}:workspace",
        ("w",),
    ),
    LazyCommand(
        "project",
        "Manage projects, which contain the experiments of a workspace.",
        f"{_ACCOUNTS}:project",
        ("p",),
    ),
    LazyCommand("user", "Manage users, log in and log out.", f"{_ACCOUNTS}:user", ("u",)),
    LazyCommand("login", "Log in as a user.", "resolute.cli.accounts.login:login"),
    LazyCommand("token", "Manage access tokens for programs.", f"{_ACCOUNTS}:token", ("tkn",)),
    LazyCommand("secret", "Manage secrets for scripts.", f"{_ACCOUNTS}:secret"),
    LazyCommand("rbac", "Give users roles, by their documented names.", f"{_ACCOUNTS}:rbac"),
    LazyCommand("audit", "Show the audit log: who changed what.", "resolute.cli.accounts.audit:audit"),
    LazyCommand(
        "preview-search", "Show what a config's search would run.", f"{_SEARCH}.preview:preview_search"
    ),
    LazyCommand("tensorboard", "Start TensorBoard on the cluster.", f"{_TASKS}:tensorboard"),
    LazyCommand("mcp", "Serve experiments to MCP clients.", "resolute.cli.mcp.command:mcp"),
    LazyCommand("compat", "Use the import name `determined` outside of trials.", f"{_COMMANDS}:compat"),
    LazyCommand("import", "Import the records of another cluster.", f"{_COMMANDS}:import_"),
    LazyCommand("sync", "Upload runs that were recorded offline.", "resolute.cli.sync:sync"),
    LazyCommand(
        "completion",
        "Print a script for command completion in a shell.",
        "resolute.cli.completion:completion",
    ),
    LazyCommand("config", "Set defaults for all commands: cluster, user, output.", f"{_COMMANDS}:config"),
    LazyCommand("admin", "Show commands that few people need.", "resolute.cli.admin:admin"),
    LazyCommand("help", "Explain a command, or the reason of an error.", "resolute.cli.help:help_"),
    LazyCommand(
        "version", "Print the versions of the client and the cluster.", "resolute.cli.cluster.version:version"
    ),
)
"""Commands of ``resolute`` that are always there."""


class RootGroup(LazyGroup):
    """The group of ``resolute`` itself: its own commands and those of plugins."""

    def entries(self) -> Sequence[LazyCommand]:
        """The commands, in the order of the help."""
        # The list of all installed distributions takes longer to read than most commands to run.
        from resolute.cli.registry.plugins import plugin_commands

        return (*super().entries(), *plugin_commands())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands of every day by what they are for, then those of other distributions."""
        for title, names in SECTIONS.items():
            self.write_section(formatter, title, names)
        known = {*ADMIN, *SAME, *(name for names in SECTIONS.values() for name in names)}
        others = [name for name in self.list_commands(ctx) if name not in known]
        self.write_section(formatter, "Of other distributions", others)

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; its errors become messages while it is still known which cluster they concern."""
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise explained(error) from error
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
    """Submit and manage experiments."""


@click.group(
    name="set", cls=LazyGroup, entries=EXPERIMENT_SET_COMMANDS, counterparts=COUNTERPARTS["experiment set"]
)
def experiment_set() -> None:
    """Change a property of an experiment."""


@click.group(name="label", cls=LazyGroup, entries=EXPERIMENT_LABEL_COMMANDS)
def experiment_label() -> None:
    """Add labels to an experiment, or remove them."""


@click.group(
    cls=LazyGroup,
    entries=TRIAL_COMMANDS,
    counterparts=COUNTERPARTS["trial"],
    foreign={"compare": FOREIGN_WORDS["compare"]},
)
def trial() -> None:
    """Inspect the trials of experiments."""


@click.group(cls=LazyGroup, entries=CHECKPOINT_COMMANDS)
def checkpoint() -> None:
    """List, download and manage checkpoints."""


@click.group(cls=LazyGroup, entries=MODEL_COMMANDS)
def model() -> None:
    """Manage models: named versions of checkpoints, which are protected from deletion."""


@click.group(cls=LazyGroup, entries=SEARCH_COMMANDS)
def search() -> None:
    """Preview, simulate and replay searches."""


@click.group(cls=LazyGroup, entries=EXPLAIN_COMMANDS)
def explain() -> None:
    """Explain why trials and experiments are in their states."""


@click.group(name="import", cls=LazyGroup, entries=IMPORT_COMMANDS)
def import_() -> None:
    """Import the records of another cluster."""


@click.group(cls=LazyGroup, entries=COMPAT_COMMANDS)
def compat() -> None:
    """Use the import name `determined` outside of trials."""


@click.group(cls=LazyGroup, entries=CONFIG_COMMANDS)
def config() -> None:
    """Set defaults for all commands, which the command line and the environment override."""

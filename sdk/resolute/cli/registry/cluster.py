"""The table of the commands about the cluster: queue, slots, machines, templates, stores, calls."""

from __future__ import annotations

import click

from resolute.cli.registry.counterparts import COUNTERPARTS
from resolute.cli.registry.lazy import LazyCommand, LazyGroup

_CLUSTER = "resolute.cli.cluster"

TEMPLATE_COMMANDS = (
    LazyCommand("create", "Create a template from a file.", f"{_CLUSTER}.templates:create"),
    LazyCommand("list", "List templates.", f"{_CLUSTER}.templates:list_", ("ls",)),
    LazyCommand("describe", "Print a template.", f"{_CLUSTER}.templates:describe"),
    LazyCommand("set", "Create or replace a template from a file.", f"{_CLUSTER}.templates:set_"),
    LazyCommand("remove", "Delete a template.", f"{_CLUSTER}.templates:remove", ("rm",)),
)
"""Commands of ``resolute template``."""

ALERT_COMMANDS = (
    LazyCommand("set", "Set alerts from a file.", f"{_CLUSTER}.alerts:set_"),
    LazyCommand("describe", "Print alerts without secrets.", f"{_CLUSTER}.alerts:describe"),
    LazyCommand("delete", "Delete alerts.", f"{_CLUSTER}.alerts:delete"),
    LazyCommand("test", "Send an alert to an endpoint.", f"{_CLUSTER}.alerts:test"),
    LazyCommand("log", "Show the latest deliveries.", f"{_CLUSTER}.alerts:log"),
)
CONFIG_POLICIES_COMMANDS = (
    LazyCommand("describe", "Print the policies for configs.", f"{_CLUSTER}.config_policies:describe"),
    LazyCommand("set", "Set the policies for configs from a file.", f"{_CLUSTER}.config_policies:set_"),
    LazyCommand("delete", "Delete the policies for configs.", f"{_CLUSTER}.config_policies:delete"),
)
"""Commands of ``resolute config-policies``."""

JOB_COMMANDS = (
    LazyCommand("list", "List the queue: who gets slots next.", f"{_CLUSTER}.jobs:list_", ("ls",)),
    LazyCommand("update", "Change an experiment's place in the queue.", f"{_CLUSTER}.jobs:update", ("u",)),
    LazyCommand("update-batch", "Change the places of several experiments.", f"{_CLUSTER}.jobs:update_batch"),
)
"""Commands of ``resolute job``."""

STORAGE_COMMANDS = (LazyCommand("doctor", "Test a checkpoint store.", f"{_CLUSTER}.storage:doctor"),)
"""Commands of ``resolute storage``."""

AGENT_COMMANDS = (
    LazyCommand("list", "List the machines of the cluster.", f"{_CLUSTER}.machines:list_machines", ("ls",)),
    LazyCommand("disable", "Start no more runs on a machine.", f"{_CLUSTER}.enabling:disable_machine"),
    LazyCommand("enable", "Start runs on a machine again.", f"{_CLUSTER}.enabling:enable_machine"),
)
"""Commands of ``resolute agent``."""

SLOT_COMMANDS = (
    LazyCommand("list", "List slots with their trials.", f"{_CLUSTER}.machines:list_slots", ("ls",)),
    LazyCommand("disable", "Start no more runs on a slot.", f"{_CLUSTER}.enabling:disable_slot"),
    LazyCommand("enable", "Start runs on a slot again.", f"{_CLUSTER}.enabling:enable_slot"),
)
"""Commands of ``resolute slot``."""

POOL_COMMANDS = (
    LazyCommand("list", "List the resource pools.", f"{_CLUSTER}.machines:list_pools", ("ls",)),
    LazyCommand("describe", "Show a resource pool.", f"{_CLUSTER}.machines:describe_pool"),
)
"""Commands of ``resolute resource-pool``."""

MASTER_COMMANDS = (
    LazyCommand("info", "Show version, address and identity of the cluster.", f"{_CLUSTER}.machines:info"),
    LazyCommand("config", "Show the settings of the server.", f"{__name__}:master_config"),
    LazyCommand("logs", "Print the last lines of the server's log.", f"{_CLUSTER}.server:logs"),
)
"""Commands of ``resolute master``."""

MASTER_CONFIG_COMMANDS = (
    LazyCommand("show", "Print the server's settings.", f"{_CLUSTER}.server:show_config"),
)
"""Commands of ``resolute master config``."""

DEV_COMMANDS = (
    LazyCommand("curl", "Make a gRPC call and print its answer as JSON.", "resolute.cli.dev:curl", ("c",)),
    LazyCommand("list", "List the gRPC calls of all services.", "resolute.cli.dev:list_", ("ls",)),
    LazyCommand("auth-token", "Print the token that commands use.", "resolute.cli.dev:auth_token"),
)
"""Commands of ``resolute dev``."""


@click.group(cls=LazyGroup, entries=JOB_COMMANDS)
def job() -> None:
    """Show the job queue and change its order."""


@click.group(cls=LazyGroup, entries=STORAGE_COMMANDS)
def storage() -> None:
    """Test checkpoint stores."""


@click.group(cls=LazyGroup, entries=TEMPLATE_COMMANDS, counterparts=COUNTERPARTS["template"])
def template() -> None:
    """Manage templates: shared parts of configs."""


@click.group(cls=LazyGroup, entries=ALERT_COMMANDS)
def alert() -> None:
    """Manage alerts: which events notify whom."""


@click.group(name="config-policies", cls=LazyGroup, entries=CONFIG_POLICIES_COMMANDS)
def config_policies() -> None:
    """Manage what admins decide for the configs of experiments."""


@click.group(cls=LazyGroup, entries=AGENT_COMMANDS)
def agent() -> None:
    """Show the machines of the cluster, and take them out of use."""


@click.group(cls=LazyGroup, entries=SLOT_COMMANDS)
def slot() -> None:
    """Show the slots of the cluster, and take them out of use."""


@click.group(
    name="resource-pool", cls=LazyGroup, entries=POOL_COMMANDS, counterparts=COUNTERPARTS["resource-pool"]
)
def resource_pool() -> None:
    """Show the resource pools: there is one, with all machines."""


@click.group(cls=LazyGroup, entries=MASTER_COMMANDS, counterparts=COUNTERPARTS["master"])
def master() -> None:
    """Show the cluster as a whole."""


@click.group(
    name="config", cls=LazyGroup, entries=MASTER_CONFIG_COMMANDS, counterparts=COUNTERPARTS["master config"]
)
def master_config() -> None:
    """Show the settings of the server."""


@click.group(cls=LazyGroup, entries=DEV_COMMANDS, counterparts=COUNTERPARTS["dev"])
def dev() -> None:
    """Call the services as a program does."""

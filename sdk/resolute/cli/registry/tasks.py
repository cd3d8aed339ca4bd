"""The table of the commands about tasks: commands, TensorBoard, and trials seen as tasks."""

from __future__ import annotations

import click

from resolute.cli.registry.counterparts import COUNTERPARTS
from resolute.cli.registry.lazy import LazyCommand, LazyGroup

_TASK = "resolute.cli.task"

COMMAND_COMMANDS = (
    LazyCommand("run", "Run a command on slots of the cluster.", f"{_TASK}.command:run"),
    LazyCommand("list", "List your commands.", f"{_TASK}.views:list_commands", ("ls",)),
    LazyCommand("describe", "Show a command.", f"{_TASK}.views:describe_command"),
    LazyCommand("logs", "Show the log of a command.", f"{_TASK}.views:command_logs"),
    LazyCommand("kill", "Stop commands immediately.", f"{_TASK}.change:kill_command"),
    LazyCommand("config", "Print the config of a command.", f"{_TASK}.views:command_config"),
    LazyCommand("set", "Change a property of a command.", f"{__name__}:command_set"),
)
"""Commands of ``resolute command``."""

COMMAND_SET_COMMANDS = (
    LazyCommand("priority", "Change the priority of a command.", f"{_TASK}.change:set_command_priority"),
)
"""Commands of ``resolute command set``."""

TENSORBOARD_COMMANDS = (
    LazyCommand("start", "Start TensorBoard on the cluster.", f"{_TASK}.tensorboard:start"),
    LazyCommand("list", "List your TensorBoards.", f"{_TASK}.views:list_tensorboards", ("ls",)),
    LazyCommand("open", "Open a TensorBoard in a browser.", f"{_TASK}.tensorboard:open_"),
    LazyCommand("logs", "Show the log of a TensorBoard.", f"{_TASK}.views:tensorboard_logs"),
    LazyCommand("kill", "Stop TensorBoards.", f"{_TASK}.change:kill_tensorboard"),
    LazyCommand("config", "Print the config of a TensorBoard.", f"{_TASK}.views:tensorboard_config"),
    LazyCommand("set", "Change a property of a TensorBoard.", f"{__name__}:tensorboard_set"),
)
"""Commands of ``resolute tensorboard``."""

TENSORBOARD_SET_COMMANDS = (
    LazyCommand(
        "priority", "Change the priority of a TensorBoard.", f"{_TASK}.change:set_tensorboard_priority"
    ),
)
"""Commands of ``resolute tensorboard set``."""

TASK_COMMANDS = (
    LazyCommand("list", "List the trials that have not ended.", f"{_TASK}.trials:list_", ("ls",)),
    LazyCommand("logs", "Show the logs of a trial.", "resolute.cli.trial.logs:logs"),
    LazyCommand("kill", "Stop trials immediately.", "resolute.cli.trial.kill:kill"),
)
"""Commands of ``resolute task``."""


@click.group(cls=LazyGroup, entries=COMMAND_COMMANDS)
def command() -> None:
    """Run commands on slots of the cluster."""


@click.group(name="set", cls=LazyGroup, entries=COMMAND_SET_COMMANDS)
def command_set() -> None:
    """Change a property of a command."""


@click.group(cls=LazyGroup, entries=TENSORBOARD_COMMANDS)
def tensorboard() -> None:
    """Start TensorBoard on the cluster."""


@click.group(name="set", cls=LazyGroup, entries=TENSORBOARD_SET_COMMANDS)
def tensorboard_set() -> None:
    """Change a property of a TensorBoard."""


@click.group(cls=LazyGroup, entries=TASK_COMMANDS, counterparts=COUNTERPARTS["task"])
def task() -> None:
    """Manage tasks: the tasks of a cluster are its trials."""

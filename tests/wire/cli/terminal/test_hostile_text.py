"""Every command that prints what the cluster stores, when somebody stored escape sequences."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
import structlog
import yaml
from support.logs import plain_logs
from wire.cli.terminal.hostile import HOSTILE, MARK, hostile_cluster

from resolute.cli.main import cli, run
from resolute.cli.registry.plugins import plugin_commands

UUID = str(uuid.UUID(int=7))
NOT_OF_THE_CLUSTER = {
    "completion",
    "config get",
    "config list",
    "config set",
    "help",
    "import determined",  # asks another cluster first
    "init",
    "login",
    "mcp",
    "open",
    "sync",
    "user login",
    "user logout",
    "user change-password",
}
OPTIONS = {
    "experiment describe": "--metrics",
    "trial describe": "--metrics --metrics-summary",
    "run": "--detach",
    "command run": "--detach",
    "tensorboard start": "--detach",
    "trial download": "--latest",
    "storage doctor": "--directory /x",
    "search replay": "--until 1",
    "workspace set-quota": "--slots 1",
    "job update": "--priority 3",
    "top": "--once",
    "model set": "--name y",
    "project set": "--notes z",
}
UNSAFE = re.compile(
    "\x1b(?!\\[[0-9;:]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
OWN = re.compile("\r(\x1b\\[1A)?\x1b\\[2K|\x1b\\[\\?25[lh]")
"""How progress bars of the command line itself redraw themselves."""

Say = Callable[..., str]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def output(home: Path, tmp_path: Path) -> Iterator[Say]:
    """Runs commands on a hostile cluster; returns all that they print, on a terminal or into a pipe."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    Path("code").mkdir()
    Path("code/train.py").touch()
    Path("config.yaml").write_text(
        "{name: x, entrypoint: x, searcher: {name: single, metric: x, max_length: 1}}"
    )

    def said(*arguments: str, kind: type[io.StringIO] = Terminal) -> str:
        file = kind()
        with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
            run(list(arguments), program="resolute")
        return file.getvalue()

    with hostile_cluster(tmp_path / "cluster") as running:
        (home / "token").write_text(running.user_token())
        endpoint = {"address": running.address, "token_path": str(home / "token"), "cluster_id": "", "pid": 1}
        (home / "endpoint.json").write_text(json.dumps(endpoint))
        yield said
    plain_logs()


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands that ask a cluster, by their full names."""
    context = click.Context(group)
    plugins = {entry.name for entry in plugin_commands()} if not path else set()
    for name in sorted(set(group.list_commands(context)) - plugins):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        elif found is not None and " ".join((*path, name)) not in NOT_OF_THE_CLUSTER:
            yield (*path, name), found


def arguments_of(name: str, command: click.Command) -> list[str]:
    """Arguments with which a command does its work."""
    found = OPTIONS.get(name, "").split()
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name == "yes":
            found.append("--yes")
        if isinstance(parameter, click.Argument):
            found.append(_value(parameter, name))
    return found


def _value(parameter: click.Argument, name: str) -> str:
    if isinstance(parameter.type, click.Choice):
        return str(next(iter(parameter.type.choices)))
    if isinstance(parameter.type, click.Path):
        return "code" if "dir" in (parameter.name or "") else "config.yaml"
    if "uuid" in (parameter.name or "") or parameter.name == "token_id":
        return UUID
    if (name, parameter.name) == ("user set-role", "role"):
        return "admin"
    return "1"


def test_no_command_lets_stored_text_control_a_terminal(output: Say) -> None:
    silent = []
    asked = list(commands(cli))
    for path, command in asked:
        name = " ".join(path)
        for arguments in ([], ["--json"]) if any(p.name == "as_json" for p in command.params) else ([],):
            text = output(*path, *arguments_of(name, command), *arguments)
            assert UNSAFE.search(OWN.sub("", text)) is None, f"{name}: {text!r}"
        if MARK not in text:
            silent.append((name, text))
    # The others say what they did in their own words and those of the command line.
    assert len(asked) - len(silent) >= 50, silent


def test_descriptions_say_what_was_dropped(output: Say) -> None:
    for command in ("trial", "experiment"):
        assert output(command, "describe", "1").count(f"warning: trial 1: {MARK}") == 2


def test_json_yaml_and_csv_keep_what_was_stored(output: Say) -> None:
    (described,) = json.loads(output("experiment", "list", "--json"))
    assert described["name"] == HOSTILE
    (line,) = output("trial", "logs", "1", "--json").splitlines()
    assert json.loads(line)["message"] == HOSTILE
    assert yaml.safe_load(output("experiment", "config", "1"))[HOSTILE] == HOSTILE
    rows = list(csv.DictReader(io.StringIO(output("experiment", "list", "--csv", kind=io.StringIO))))
    assert rows[0]["name"] == HOSTILE


def test_log_lines_keep_colours_which_end_with_the_line(output: Say) -> None:
    line = output("trial", "logs", "1")
    assert line.endswith("\x1b[31mred\x1b[0m\n")
    assert "\x1b[2J" not in line

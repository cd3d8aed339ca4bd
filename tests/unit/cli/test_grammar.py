"""The grammar of the command line: names, aliases, prefixes, help, completion, plugins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest

from resolute.cli.main import cli, run
from resolute.cli.registry import cluster, commands, plugins, sections
from resolute.cli.registry.counterparts import COUNTERPARTS
from resolute.cli.registry.foreign_words import FOREIGN_WORDS
from resolute.cli.registry.lazy import LazyCommand, LazyGroup
from resolute.contracts.distribution import install_command

GROUPS = (cli, commands.experiment, commands.trial, commands.checkpoint, cluster.template, commands.search)
# Plugins are tested where they live.
OWN = [
    (group, entry)
    for group in GROUPS
    for entry in group.entries()
    if not isinstance(entry, plugins.PluginCommand)
]


@pytest.mark.parametrize(("group", "entry"), OWN, ids=lambda value: value.name)
def test_every_command_can_be_loaded_and_has_help(group: LazyGroup, entry: LazyCommand) -> None:
    command = entry.load()
    assert command.name == entry.name
    assert command.help
    assert entry.help.endswith(".")
    context = click.Context(command, info_name=entry.name)
    assert entry.name in command.get_help(context)


def test_the_help_shows_each_command_of_ours_once() -> None:
    shown = [name for names in sections.SECTIONS.values() for name in names]
    placed = [*shown, *sections.ADMIN, *sections.SAME]
    assert len(placed) == len(set(placed))
    assert set(placed) == {entry.name for entry in cli.entries()}


def test_commands_of_operators_are_shown_and_run_by_admin(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"], program="resolute") == 0
    assert "resource-pool" not in capsys.readouterr().out
    assert run(["admin"], program="resolute") == 0
    assert "resource-pool, rp" in capsys.readouterr().out
    assert run(["admin", "agent", "list", "--help"], program="resolute") == 0
    assert capsys.readouterr().out.startswith("Usage: resolute agent list")
    assert run(["admin", "agnt"], program="resolute") == 2
    assert "Did you mean agent?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (("e", "create"), "resolute experiment create"),
        (("exp", "cr"), "resolute experiment create"),
        (("experiment", "lt"), "resolute experiment list-trials"),
        (("e", "list"), "resolute experiment list "),
        (("e", "desc"), "resolute experiment describe"),
        (("e", "unpause"), "resolute experiment activate"),
        (("e", "download"), "resolute experiment download "),
        (("e", "download-m"), "resolute experiment download-model-def"),
        (("j", "u"), "resolute job update"),
        (("t", "logs"), "resolute trial logs"),
        (("c", "down"), "resolute checkpoint download"),
        (("temp", "set"), "resolute template set"),
        (("prev",), "resolute preview-search"),
        (("search", "sim"), "resolute search simulate"),
    ],
)
def test_names_can_be_shortened(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], usage: str
) -> None:
    assert run([*arguments, "--help"], program="resolute") == 0
    assert capsys.readouterr().out.startswith(f"Usage: {usage}")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("e", "li"), "'li' is short for several commands: list, list-trials, list-checkpoints."),
        (("e", "creat_"), "There is no command 'creat_'. Did you mean create?"),
        (("zzz",), "There is no command 'zzz'."),
        (("e", "dow"), "'dow' is short for several commands: download, download-model-def."),
        (("e", "del"), "'del' is short for several commands: delete, delete-tb-files."),
        (("user", "link"), "There is no `resolute user link-with-agent-user`: trials run as the user"),
        (("task", "co"), "There is no `resolute task config`: `resolute experiment config` prints"),
        (("task", "cle"), "There is no `resolute task cleanup-logs`: logs are kept"),
        (
            ("notebook", "start"),
            "There is no `resolute notebook`: start it by `resolute command run COMMAND`",
        ),
        (("res", "agg"), "There is no `resolute res`: `resolute workspace list` shows the slots in use"),
        (("d", "local", "cluster-up"), "There is no `resolute d`: `resolute up` starts a cluster"),
        (("sweep",), "There is no `resolute sweep`: a config with a searcher is a sweep"),
        (("e", "--nope"), "No such option"),
    ],
)
def test_what_is_unclear_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert run(list(arguments), program="resolute") == 2
    assert message in capsys.readouterr().err


def test_no_command_is_said_to_be_missing() -> None:
    for path, counterparts in COUNTERPARTS.items():
        group = group_at(path.split())
        assert group is not None
        names = {name for entry in group.entries() for name in (entry.name, *entry.aliases)}
        assert names & counterparts.keys() == set(), path


def test_counterparts_name_commands_that_exist() -> None:
    clauses = [clause for group in COUNTERPARTS.values() for clause in group.values()]
    for clause in [*clauses, *FOREIGN_WORDS.values()]:
        for command in re.findall(r"`resolute ([^`]+)`", clause):
            words = [word for word in command.split() if word.islower() and word[0] != "-"]
            assert isinstance(command_at(words), click.Command), command


def command_at(path: list[str]) -> click.Command | None:
    """The command with a path of whole names; None if there is none."""
    found: click.Command = cli
    for word in path:
        entries = found.entries() if isinstance(found, LazyGroup) else ()
        entry = next((entry for entry in entries if word in (entry.name, *entry.aliases)), None)
        if entry is None:
            return None
        found = entry.load()
    return found


def group_at(path: list[str]) -> LazyGroup | None:
    """The group with a path; None if it is missing as a whole or is a single command."""
    found = command_at(path)
    return found if isinstance(found, LazyGroup) else None


@pytest.mark.parametrize("path", [(), ("e",), ("e", "set")], ids=" ".join)
def test_help_is_a_word_in_every_group(capsys: pytest.CaptureFixture[str], path: tuple[str, ...]) -> None:
    assert run([*path, "--help"], program="resolute") == 0
    text = capsys.readouterr().out
    assert run([*path, "help"], program="resolute") == 0
    assert capsys.readouterr().out == text


def test_help_names_commands_with_their_aliases(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"], program="det") == 0
    text = capsys.readouterr().out
    assert text.startswith("Usage: det ")
    assert "experiment, e, exp " in text
    for name in ("up", "down", "status"):
        assert f"\n  {name} " in text


HEAVY = ("grpc", "rich", "yaml", "google.protobuf", "resolute.client", "resolute.api", "torch", "numpy")


@pytest.mark.parametrize("arguments", [("--help",), ("e", "--help"), ("--version",)], ids=" ".join)
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    script = (
        "import sys; from resolute.cli.main import run; code = run(sys.argv[1:])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
        "sys.exit(code)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    assert result.stderr == "[]\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("resolute ", {"experiment", "trial", "up"}),
        ("resolute e l", {"list", "logs", "list-trials", "list-checkpoints"}),
        ("resolute experiment create --te", {"--template", "--test", "--test-mode"}),
    ],
)
def test_shells_complete_commands_and_options(line: str, expected: set[str]) -> None:
    words = line.split(" ")
    environment = {
        **os.environ,
        "_RESOLUTE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    script = "import sys; sys.argv[0] = 'resolute'; from resolute.cli.main import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    found = {answer.split(",")[1] for answer in result.stdout.splitlines()}
    assert expected <= found, result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("program", ["resolute", "det"])
def test_a_completion_script_is_printed(capsys: pytest.CaptureFixture[str], shell: str, program: str) -> None:
    assert run(["completion", shell], program=program) == 0
    assert f"_{program.upper()}_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Pretends that these entry points are the installed ones."""

    def install(**targets: str) -> None:
        points = [EntryPoint(name, value, plugins.GROUP) for name, value in targets.items()]
        monkeypatch.setattr(plugins, "entry_points", lambda group: points if group == plugins.GROUP else [])
        plugins.plugin_commands.cache_clear()

    yield install
    plugins.plugin_commands.cache_clear()


def test_services_that_are_not_installed_are_named_with_the_remedy(
    installed: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    installed(up="no_such_package.cli:up")
    assert run(["up"], program="resolute") == 1
    error = capsys.readouterr().err
    assert "`resolute up` needs the services, which are not installed here" in error
    assert install_command("server") in error
    assert run(["--help"], program="resolute") == 0


def test_every_command_of_ours_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"], program="resolute") == 0
    assert "From resolute" not in capsys.readouterr().out


def test_plugins_bring_commands(installed: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    installed(
        hello="resolute.cli.cluster.version:version",
        broken="resolute.cli.cluster.version:__name__",
        gone="no_such:x",
    )
    assert run(["hello", "--help"], program="resolute") == 0
    assert "Print the versions" in capsys.readouterr().out
    assert run(["broken"], program="resolute") == 1
    assert "the command broken, is not a click command" in capsys.readouterr().err
    assert run(["gone"], program="resolute") == 1
    assert "the command gone cannot be loaded" in capsys.readouterr().err


def test_a_defect_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(_self: object, _ctx: object, _name: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(LazyGroup, "get_command", defect)
    with pytest.raises(ZeroDivisionError):
        run(["version"], program="resolute")


def test_a_reader_that_has_enough_is_no_error() -> None:
    script = "from resolute.cli.main import main; main(['--help'])"
    command = f'{sys.executable} -c "{script}" | true'
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert result.stderr == ""


def test_a_reader_that_has_enough_ends_a_command_without_a_word() -> None:
    read, write = os.pipe()
    os.close(read)
    program = Path(sys.executable).with_name("resolute")
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            [program, "help", "errors"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "")

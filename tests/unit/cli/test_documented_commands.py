"""Each documented command and option is the same, differs as listed, or is refused by name."""

from __future__ import annotations

import uuid
from typing import Any

import cli_lists as lists
import click
import pytest
from determined_names.cli_differences import DIFFERENCES

from resolute.cli.display.log_lines import Timestamp
from resolute.cli.main import run
from resolute.cli.options.identifiers import Key, Keys
from resolute.cli.registry.refused_options import REFUSED_OPTIONS

DOCUMENTED = {one.path: one for one in lists.documented()}
HERE = {path: command for path, one in DOCUMENTED.items() if (command := lists.command_of(one)) is not None}
REFUSED = sorted(path for path in DOCUMENTED if path not in HERE)


def test_the_page_lists_every_documented_command_and_option() -> None:
    assert lists.SECTION.holds(lists.lists()), "run tools/pages/cli_lists.py"


def test_every_difference_is_one_of_a_documented_command() -> None:
    shown = {
        f"{item.path} {name}".strip() for item in lists.documented_items() for name in item.options or ("",)
    }
    assert DIFFERENCES.keys() - shown == set()


def test_every_documented_command_takes_its_documented_options_and_arguments() -> None:
    """Every command that is here reads the command line with all that is documented."""
    for one in lists.documented():
        command = HERE.get(one.path)
        if command is None or isinstance(command, click.Group) or one.path.endswith("help"):
            continue
        known = {name: parameter for parameter in command.params for name in parameter.opts}
        words: list[str] = []
        for option in one.options:
            for name in option:
                parameter = known.get(name.rstrip("="))
                if isinstance(parameter, click.Option):
                    assert parameter.is_flag is not option[-1].endswith("="), (one.path, name)
                    words += [name.rstrip("="), *([] if parameter.is_flag else [value(parameter.type)])]
        taken = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
        given = [value(parameter.type) for parameter, _ in zip(taken, one.arguments, strict=False)]
        if one.path == "dev curl":  # its arguments for another program are gone
            given = given[:1]
        else:
            assert len(given) == len(one.arguments), one.path
        context = command.make_context(one.path, [*words, *given])
        assert context.args == []


def value(kind: Any) -> str:
    """A word that an option or an argument takes."""
    if isinstance(kind, click.Choice):
        return str(next(iter(kind.choices)))
    if isinstance(kind, (Key, Keys)):
        return str(uuid.UUID(int=7))
    if isinstance(kind, Timestamp):
        return "2030-01-31T12:00:00Z"
    return "1"


def test_a_refused_command_says_what_to_use_instead(capsys: pytest.CaptureFixture[str]) -> None:
    for path in REFUSED:
        assert run([*path.split(), "--help"], program="det") == 2
        error = capsys.readouterr().err
        assert f"{lists.counterpart(DOCUMENTED[path])}." in error


def test_a_refused_option_says_what_to_use_instead(capsys: pytest.CaptureFixture[str]) -> None:
    for path, options in REFUSED_OPTIONS.items():
        for name, clause in options.items():
            assert run([*path.split(), name], program="det") == 2
            error = capsys.readouterr().err
            assert f"`resolute {path}` has no {name}: {clause}." in error


def test_an_option_that_nobody_documents_is_just_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["user", "create", "--nope"], program="det") == 2
    assert "No such option" in capsys.readouterr().err

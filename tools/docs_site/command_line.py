"""The reference of the command line, from the definitions of the commands."""

from __future__ import annotations

from collections.abc import Iterator

import click

from resolute.cli.main import cli


def pages() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of a page for each command of the root."""
    root = click.Context(cli, info_name="resolute")
    rows = []
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        assert command is not None
        rows.append(f"| [{name}]({name}.md) | {_cell(command.get_short_help_str(200))} |")
        sections = "\n".join(_sections(command, root, name))
        yield f"{name}.md", f"# resolute {name}\n\n{sections}"
    yield "README.md", "\n".join(["# Commands", "", "| command | |", "|---|---|", *rows, ""])


def _sections(command: click.Command, parent: click.Context, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    if parent.parent is not None:
        yield f"\n## {context.command_path}\n"
    yield f"{command.help or ''}\n"
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"```text\n{usage}\n```\n"
    options = [
        param for param in command.get_params(context) if isinstance(param, click.Option) and not param.hidden
    ]
    if options:
        yield "| option | |\n|---|---|"
        yield from (_option(option, context) for option in options)
        yield ""
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            subcommand = command.get_command(context, below)
            assert subcommand is not None
            yield from _sections(subcommand, context, below)


def _option(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    name, text = record if record is not None else (", ".join(option.opts), option.help or "")
    return f"| `{_cell(name)}` | {_cell(text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")

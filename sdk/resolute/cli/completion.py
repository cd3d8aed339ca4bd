"""``resolute completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_HOW = {
    "bash": 'eval "$({program} completion bash)"     # in ~/.bashrc',
    "zsh": 'eval "$({program} completion zsh)"      # in ~/.zshrc, after compinit',
    "fish": "{program} completion fish | source      # in ~/.config/fish/config.fish",
}


@click.command(
    epilog="\b\nTo enable it in every shell:\n"
    + "\n".join(f"  {_HOW[s].format(program='resolute')}" for s in _HOW)
)
@click.argument("shell", type=click.Choice(sorted(_HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script for command completion in SHELL."""
    root = ctx.find_root()
    program = root.info_name or "resolute"
    kind = get_completion_class(shell)
    assert kind is not None
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    click.echo(kind(root.command, {}, program, variable).source())

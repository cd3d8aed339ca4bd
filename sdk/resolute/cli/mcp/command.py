"""``resolute mcp``."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from pathlib import Path

import click

from resolute.cli.options.settings import Settings
from resolute.client.connection.home import Home
from resolute.contracts.distribution import install_command


@click.command()
@click.option("--allow-changes", is_flag=True, help="Also offer tools that pause, fork, cancel and kill.")
@click.option("--http", "address", default="", metavar="HOST:PORT", help="Serve HTTP on loopback.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Token that HTTP requests must carry; created if missing. [default: mcp-token in the home]",
)
@click.pass_obj
def mcp(settings: Settings, allow_changes: bool, address: str, token_file: Path | None) -> None:
    """Serve the Model Context Protocol, by which language models read experiments, over stdin and stdout."""
    if importlib.util.find_spec("mcp") is None:
        raise click.ClickException(f"MCP is not installed; install it with: {install_command('mcp')}")
    # These import what the extra installs.
    from resolute.cli.mcp.http import PATH, http_server, listen, token_from
    from resolute.cli.mcp.server import make_server

    server = make_server(settings.services(), allow_changes=allow_changes)
    if not address:
        server.run("stdio")
        return
    file = token_file or Home.from_environment(os.environ).path / "mcp-token"
    with listen(address) as opened:
        serving = http_server(server, opened, token=token_from(file))
        host, port = opened.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"serving MCP at http://{shown}:{port}{PATH}; the token is in {file}")
        asyncio.run(serving.serve(sockets=[opened]))

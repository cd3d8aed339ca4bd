"""``resolute dev curl|list|auth-token``: calls RPCs of the services."""

from __future__ import annotations

import sys
from typing import Any

import click

from resolute.cli.options.settings import Settings


@click.command(name="list")
def list_() -> None:
    """List the calls of all services: the names that `dev curl` takes."""
    from resolute.contracts.calls.methods import methods, path_of

    for method in methods():
        click.echo(path_of(method)[1:])


@click.command()
@click.argument("call")
@click.option(
    "-d", "--data", metavar="JSON", default="{}", help="The request; - to read it from standard input."
)
@click.pass_obj
def curl(settings: Settings, call: str, data: str) -> None:
    """Make the gRPC call CALL, such as ClusterService/GetCluster, and print its answer as JSON.

    The fields of requests and answers are those of the contract (docs/clients.md). A call that streams prints
    one line of JSON for each message.
    """
    from google.protobuf import json_format, message_factory

    from resolute.contracts.calls.methods import path_of

    method = _find(call)
    text = sys.stdin.read() if data == "-" else data
    try:
        request = json_format.Parse(text, message_factory.GetMessageClass(method.input_type)())
    except json_format.ParseError as error:
        raise click.UsageError(f"--data is no {method.input_type.name}: {error}") from error
    session = settings.services().session
    answer = message_factory.GetMessageClass(method.output_type)
    kind = "unary_stream" if method.server_streaming else "unary_unary"
    made = session.stub(
        lambda channel: getattr(channel, kind)(
            path_of(method),
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )
    )
    for message in made(request) if method.server_streaming else [made(request)]:
        indent = None if method.server_streaming else 2
        click.echo(json_format.MessageToJson(message, indent=indent, ensure_ascii=False))


@click.command(name="auth-token")
@click.pass_obj
def auth_token(settings: Settings) -> None:
    """Print the token with which commands call the cluster."""
    click.echo(settings.services().session.endpoint.token())


def _find(call: str) -> Any:
    from resolute.contracts.calls.methods import methods, path_of

    wanted = call.strip("/").replace("/", ".")
    matches = [method for method in methods() if f".{method.full_name}".endswith(f".{wanted}")]
    if len(matches) != 1:
        raise click.UsageError(f"There is no call {call!r}; `resolute dev list` lists all calls.")
    if matches[0].client_streaming:
        raise click.UsageError(
            f"{path_of(matches[0])[1:]} takes a stream; make it from a program (docs/clients.md)."
        )
    return matches[0]

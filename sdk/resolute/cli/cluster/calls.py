"""``resolute dev curl|list|auth-token``: calls of the services as a program makes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import click

from resolute.cli.options.settings import Settings


@click.command(name="list")
def list_() -> None:
    """List the calls of all services: the names that `dev curl` takes."""
    for method in _methods():
        click.echo(_path(method))


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
            f"/{_path(method)}",
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
    wanted = call.strip("/").replace("/", ".")
    found = [method for method in _methods() if f".{method.full_name}".endswith(f".{wanted}")]
    if len(found) != 1:
        raise click.UsageError(f"There is no call {call!r}; `resolute dev list` lists all calls.")
    if found[0].client_streaming:
        raise click.UsageError(f"{_path(found[0])} takes a stream; make it from a program (docs/clients.md).")
    return found[0]


def _path(method: Any) -> str:
    return f"{method.containing_service.full_name}/{method.name}"


def _methods() -> Iterator[Any]:
    """The calls of the contract, by service."""
    import resolute.api

    for module in sorted(one.name for one in walk_packages(resolute.api.__path__, "resolute.api.")):
        if module.endswith("_service_pb2"):
            for service in import_module(module).DESCRIPTOR.services_by_name.values():
                yield from service.methods

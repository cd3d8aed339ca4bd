"""Turns errors into one message for the user at the terminal."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import IO, Any

import click

from resolute import errors
from resolute.cli.options.settings import Settings
from resolute.client.connection.endpoint import (
    CERTIFICATE_VARIABLES,
    TOKEN_VARIABLE,
    Endpoint,
    NoClusterError,
)
from resolute.rpc.connection_causes import CLOSED, NOT_GRPC, TLS_MISMATCH, UNTRUSTED

_LISTS = {
    "workspace": "`resolute workspace list` lists all workspaces, `resolute workspace create` creates one",
    "project": "`resolute project list WORKSPACE` lists all projects, `resolute project create` creates one",
    "user": "`resolute user list` lists all users",
    "model": "`resolute model list` lists all models",
}
"""What lists objects of a kind, by the first word of their ``resource``."""
_LITTLE = 64 * 1024
"""Bytes; a disk with less room is full."""
_ROOM = "free some space there, then repeat the command"
_MOST_WORDS = 32
"""Of a command line in which a path with spaces is looked for."""

_NUMBERS = {"integer": "a whole number", "float": "a number"}
"""What click calls numbers with bounds, with what they are."""


class Failure(click.ClickException):
    """The failure of a command, with a message that needs no addition."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        """Writes the message to stderr, or to ``file``."""
        click.echo(self.message, file=file, err=file is None)


def explain(error: BaseException, settings: Settings | None) -> str | None:
    """Writes what went wrong and what to do; None for a defect of this program, whose traceback is wanted.

    Args:
        error: What a command raised.
        settings: Tell which cluster was asked; None if the command line did not get that far.
    """
    if isinstance(error, errors.ResoluteError):
        return "\n".join(
            [f"error: {_text(error)}", *_commands(error), *_hints(error, settings), *_reason(error)]
        )
    if isinstance(error, OSError):
        # Loaded only now: it loads what few commands want.
        from resolute.transfer.disk import is_full_disk

        if is_full_disk(error):
            return f"error: {full_disk_text(error)}"
        subject = f"{error.filename}: " if error.filename else ""
        return f"error: {subject}{error.strerror or error}"
    return None


def full_disk_text(error: OSError) -> str:
    """Writes which disk is full and what to do. The failure of a write, unlike one to open, names no file."""
    from resolute.client.connection.home import Home
    from resolute.transfer.disk import require_room

    if error.filename:
        return f"cannot write {error.filename}: {error.strerror}; {_ROOM}"
    home = Home.from_environment(os.environ).path
    for place in (Path(), home, Path(tempfile.gettempdir())):
        # A directory may be gone meanwhile.
        with suppress(FileNotFoundError):
            try:
                require_room(place.absolute(), _LITTLE, remedy=_ROOM)
            except errors.QuotaError as full:
                return str(full)
    return f"cannot write where the output goes: {error.strerror}; {_ROOM}"


def usage_advice(error: click.UsageError, arguments: Sequence[str]) -> str:
    """What to type instead of a wrong command line, where its words tell; else empty.

    Args:
        error: What is wrong.
        arguments: The command line.
    """
    if isinstance(error, click.NoSuchOption) and error.ctx is not None and error.ctx.parent is None:
        return "  the options of a command come after it"
    for kind, expected in _NUMBERS.items():
        if error.message.endswith(f"not a valid {kind} range."):
            return f"  {expected} is expected there"
    if "unexpected extra argument" in error.message:
        # Each pair is looked up: of a long line, such as one with a pattern of the shell, only the beginning.
        for first, last in combinations(range(min(len(arguments), _MOST_WORDS) + 1), 2):
            path = " ".join(arguments[first:last])
            if last - first > 1 and os.path.exists(path):  # noqa: PTH110 - that of Path raises for a long name
                return f"  a path with spaces is written in quotes: {shlex.quote(path)}"
    return ""


def _text(error: errors.ResoluteError) -> str:
    message = str(error) or type(error).__name__
    # Most messages about several faults list them already, each on a line of its own.
    return "\n".join(
        [
            message,
            *(
                f"  {fault}"
                for fault in error.violations
                if str(fault) not in message and fault.description not in message
            ),
        ]
    )


def _reason(error: errors.ResoluteError) -> list[str]:
    # For people only; and what is wrong with a value stands in the message itself.
    if not error.reason or isinstance(error, errors.InvalidArgumentError) or not sys.stderr.isatty():
        return []
    return [f"  more: resolute help errors {error.reason}"]


def _commands(error: errors.ResoluteError) -> list[str]:
    """What to type: errors of the SDK name what is wrong, and know nothing of commands."""
    if isinstance(error, NoClusterError):
        return ["  `resolute up` starts one on this machine; -m HOST:PORT names another"]
    if isinstance(error, errors.FailedPreconditionError):
        # Loaded only now: few commands transfer files.
        from resolute.transfer.transport import UrlRefusedError

        if isinstance(error, UrlRefusedError):
            return ["  `resolute storage doctor` checks the storage"]
        return []
    if isinstance(error, errors.NotFoundError):
        advice = _LISTS.get(error.resource.partition(" ")[0])
        return [f"  {advice}"] if advice else []
    return []


def _hints(error: errors.ResoluteError, settings: Settings | None) -> list[str]:
    endpoint = settings.endpoint() if settings is not None else None
    if settings is None or endpoint is None:
        return []
    if isinstance(error, errors.UnauthenticatedError):
        if settings.by_password():
            return []  # the message names the password, which is what was sent
        sign_in = f"`resolute user login NAME` signs in; or give a token of that cluster in {TOKEN_VARIABLE}"
        if not endpoint.token() and endpoint.token_origin.startswith("from "):
            return [f"  {sign_in}"]  # a file that is not there, or holds no token, is not worth naming
        return [f"  {endpoint.address} refused the token ({endpoint.token_origin}); {sign_in}"]
    if isinstance(error, errors.UnavailableError) and not isinstance(error, errors.DeadlineError):
        return [f"  {_of_connection(str(error), endpoint)}"]
    return []


def _of_connection(message: str, endpoint: Endpoint) -> str:
    """What to do about a failed connection; gRPC names no side that expects TLS, but this one is known."""
    plain, by_tls = (f"`-m {scheme}://{endpoint.address}`" for scheme in ("http", "https"))
    if TLS_MISMATCH in message:
        if endpoint.tls is None:
            return f"the command asked without TLS: {by_tls} asks with it"
        return f"the command asked by TLS: {plain} asks without it"
    if UNTRUSTED in message:
        login = (
            f"`resolute -m https://{endpoint.address} user login NAME` shows its fingerprint and trusts it"
        )
        return f"{login}; or name its authority in {CERTIFICATE_VARIABLES[0]}"
    if NOT_GRPC in message and not endpoint.http_url:
        page = plain if endpoint.tls is None else by_tls
        return f"if it is the address of the page, write {page}"
    if CLOSED in message and endpoint.tls is None:
        return f"{endpoint.remedy}; if it expects TLS, {by_tls} asks with it"
    return endpoint.remedy

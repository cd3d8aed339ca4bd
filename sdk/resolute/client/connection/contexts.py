"""Named clusters, in the file ``contexts.json`` of the home."""

from __future__ import annotations

import fcntl
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from resolute.client.connection.endpoint import (
    CERTIFICATE_NAME_VARIABLES,
    CERTIFICATE_VARIABLES,
    MASTER_VARIABLES,
    TOKEN_FILE_VARIABLE,
    TOKEN_VARIABLE,
    USER_TOKEN_VARIABLE,
    find_endpoint,
)
from resolute.client.connection.home import HOME_VARIABLE, Home
from resolute.client.connection.session import Session
from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, kw_only=True)
class ClusterContext:
    """The address of a cluster and the user to act as. It holds no secrets."""

    name: str
    server: str = ""
    """Its address; empty for the one that `resolute up` runs on the home below."""
    user: str = ""
    """Act as this user; empty for the user of the token."""
    token_file: str = ""
    """File with the token; empty for the one of `resolute login`."""
    home: str = ""
    """Home of the cluster on this machine, or with the credentials; empty for the usual one."""

    def session(self, environment: Mapping[str, str]) -> Session:
        """Makes a session with the cluster.

        Args:
            environment: Environment variables; those that name a cluster, its certificate or a token have no
                effect.

        Raises:
            FailedPreconditionError: No cluster runs on the home, or a file cannot be read.
            InvalidArgumentError: The address is not one.
        """
        certificates = (*CERTIFICATE_VARIABLES, *CERTIFICATE_NAME_VARIABLES)
        tokens = (TOKEN_VARIABLE, TOKEN_FILE_VARIABLE, USER_TOKEN_VARIABLE)
        overridden = {*MASTER_VARIABLES, *certificates, *tokens}
        known = {name: value for name, value in environment.items() if name not in overridden}
        if self.home:
            known[HOME_VARIABLE] = self.home
        if self.token_file:
            known[TOKEN_FILE_VARIABLE] = self.token_file
        return Session(find_endpoint(self.server, environment=known), user=self.user)


class Contexts:
    """The contexts of a home.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of_home(cls, environment: Mapping[str, str]) -> Contexts:
        """Those of the home that the environment names."""
        return cls(Home.from_environment(environment).path / "contexts.json")

    def all(self) -> list[ClusterContext]:
        """Returns all contexts, by name.

        Raises:
            FailedPreconditionError: The file is damaged.
        """
        try:
            content = json.loads(self._path.read_text())
            return [ClusterContext(**{**content[name], "name": name}) for name in sorted(content)]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise FailedPreconditionError(
                f"cannot read {self._path} ({error}); correct or remove it"
            ) from error

    def get(self, name: str) -> ClusterContext:
        """Returns a context.

        Raises:
            NotFoundError: There is none of this name.
        """
        contexts = {context.name: context for context in self.all()}
        if name not in contexts:
            known = f"the contexts are {', '.join(contexts)}" if contexts else "there are no contexts"
            raise NotFoundError(
                f"there is no context {name!r}: {known}; "
                f"`resolute config set-context {name} --server HOST:PORT` makes it"
            )
        return contexts[name]

    def set(self, context: ClusterContext) -> None:
        """Adds a context, or replaces the one of its name.

        Raises:
            InvalidArgumentError: Its name cannot be one, or it names no cluster.
        """
        if not _NAME.fullmatch(context.name):
            raise InvalidArgumentError(
                f"{context.name!r} cannot name a context; use 1 to 64 letters, digits, dots, dashes and "
                "underscores, a letter or a digit first"
            )
        if not context.server and not context.home:
            raise InvalidArgumentError(
                f"context {context.name} names no cluster; give --server HOST:PORT, or --home for one of "
                "`resolute up`"
            )
        if context.home:
            # Commands may be called in any directory.
            context = replace(context, home=str(Path(context.home).expanduser().absolute()))
        if context.token_file:
            context = replace(context, token_file=str(Path(context.token_file).expanduser().absolute()))
        with self._locked():
            self._write([*(one for one in self.all() if one.name != context.name), context])

    def delete(self, name: str) -> None:
        """Removes a context.

        Raises:
            NotFoundError: There is none of this name.
        """
        with self._locked():
            self.get(name)
            self._write([context for context in self.all() if context.name != name])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps other processes from writing: of two that read the same, one would undo the other."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _write(self, contexts: list[ClusterContext]) -> None:
        content = {context.name: _fields(context) for context in contexts}
        write_atomically(self._path, json.dumps(content, indent=2) + "\n")


def _fields(context: ClusterContext) -> dict[str, str]:
    return {name: value for name, value in asdict(context).items() if value and name != "name"}

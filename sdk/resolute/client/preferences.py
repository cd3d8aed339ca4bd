"""The user's defaults for commands and the Python client: the cluster, the user, the output format."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from resolute.client.connection.endpoint import named_master, names_user, parse_address
from resolute.client.connection.home import HOME_VARIABLE, Home
from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute.transfer.disk import is_full_disk

OUTPUTS = ("table", "json", "csv")
"""What lists are printed as."""
KEYS: Mapping[str, str] = {
    "server": "address of the cluster, for commands without -m and without RESOLUTE_MASTER",
    "user": "act as this user, for commands without -u",
    "output": f"how lists are printed, for commands without --json and --csv: {', '.join(OUTPUTS)}",
}
"""What can be set, each with its meaning."""


class Preferences:
    """The file ``settings.json`` of the home.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_home(cls) -> Preferences:
        """Those of the home that the environment names."""
        return cls(Home.from_environment(os.environ).path / "settings.json")

    def all(self) -> dict[str, str]:
        """Returns what is set.

        Raises:
            FailedPreconditionError: The file is damaged.
        """
        try:
            content = json.loads(self.path.read_text())
        except FileNotFoundError:
            return {}
        except NotADirectoryError as error:
            raise FailedPreconditionError(
                f"{self.path.parent} is not a directory; let {HOME_VARIABLE} name one"
            ) from error
        except (OSError, ValueError) as error:
            raise FailedPreconditionError(
                f"cannot read {self.path} ({error}); correct or remove it"
            ) from error
        if not isinstance(content, dict):
            raise FailedPreconditionError(f"{self.path} is not a JSON object; correct or remove it")
        values = {key: str(value) for key, value in content.items() if key in KEYS}
        if values.get("output", OUTPUTS[0]) not in OUTPUTS:
            raise FailedPreconditionError(
                f"{self.path}: output is {values['output']!r}, not one of {', '.join(OUTPUTS)}; correct it"
            )
        return values

    def get(self, key: str) -> str:
        """Returns one value; empty if it is not set."""
        return self.all().get(check_key(key), "")

    def set(self, key: str, value: str) -> None:
        """Sets a value; an empty one removes it.

        Raises:
            InvalidArgumentError: There is no such key, or the value cannot be.
            FailedPreconditionError: The file cannot be written.
        """
        if check_key(key) == "output" and value and value not in OUTPUTS:
            raise InvalidArgumentError(f"output: found {value!r}; expected one of {', '.join(OUTPUTS)}")
        if key == "server" and value:
            parse_address(value)
        kept = {**self.all(), key: value}
        content = {name: text for name, text in kept.items() if text}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, json.dumps(content, indent=2) + "\n")
        except OSError as error:
            remedy = f"let {HOME_VARIABLE} name a directory that you may write"
            if is_full_disk(error):
                remedy = "free some space there, then repeat the command"
            raise FailedPreconditionError(f"cannot write {self.path}: {error.strerror}; {remedy}") from error


def preferred(master: str, user: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Completes what a caller leaves open, and the environment does, by what the user has set.

    Args:
        master: The cluster that the caller names; empty for none.
        user: The user whom the caller names; empty for none.
        environment: Environment variables.

    Raises:
        FailedPreconditionError: The file is damaged.
    """
    known = Preferences.of_home().all()
    if not named_master(environment)[1]:
        master = master or known.get("server", "")
    if not names_user(environment):
        user = user or known.get("user", "")
    return master, user


def check_key(key: str) -> str:
    """Returns the key if there is one of this name.

    Raises:
        InvalidArgumentError: There is none.
    """
    if key not in KEYS:
        raise InvalidArgumentError(f"there is no setting {key!r}; the settings are {', '.join(KEYS)}")
    return key

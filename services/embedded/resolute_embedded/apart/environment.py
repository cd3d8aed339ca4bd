"""Environment files for containers, like `EnvironmentFile` of a systemd unit."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

from resolute.errors import FailedPreconditionError, InvalidArgumentError

FILES_VARIABLE = "RESOLUTE_ENV_FILES"
"""Names files of settings, separated by colons."""


def load(variables: MutableMapping[str, str]) -> None:
    """Adds what the files say to an environment, of which nothing is replaced; later files win over earlier.

    Raises:
        FailedPreconditionError: A file cannot be read.
        InvalidArgumentError: A line is not a setting.
    """
    names = [name for name in variables.get(FILES_VARIABLE, "").split(":") if name]
    values: dict[str, str] = {}
    for name in names:
        values |= read(Path(name))
    for key, value in values.items():
        variables.setdefault(key, value)


def read(path: Path) -> dict[str, str]:
    """Reads lines of the form ``NAME=value``; others are empty or begin with ``#``.

    Raises:
        FailedPreconditionError: The file cannot be read.
        InvalidArgumentError: A line is not a setting.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise FailedPreconditionError(
            f"{FILES_VARIABLE} names {path}, which cannot be read: {error.strerror}"
        ) from error
    settings = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.isidentifier():
            raise InvalidArgumentError(f"{path}:{number} is not NAME=value")
        settings[name] = value
    return settings

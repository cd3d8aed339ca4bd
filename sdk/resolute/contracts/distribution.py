"""The name and version of the installed distribution, and the command that installs an extra of it."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "resolute-train"
"""Packages and commands are called ``resolute``; on package indexes that name belongs to another project."""


@cache
def version() -> str:
    """Returns the installed version, such as ``0.1.0``.

    Raises:
        importlib.metadata.PackageNotFoundError: The code is on the path but was never installed.
    """
    from importlib import metadata  # here: launchers, which compare names alone, start without it

    return metadata.version(NAME)


def install_command(*extras: str) -> str:
    """Returns the command that installs further parts from where this installation came.

    Args:
        extras: Names of extras, such as ``server``.

    Returns:
        Such as ``pip install '/home/ada/clone[server]'`` for a clone or wheel that is still there, else
        ``pip install 'resolute-train[server]'``.
    """
    source, option = _source()
    return f"pip install {option}'{source}[{','.join(extras)}]'"


def normalized_name(name: str) -> str:
    """Returns the one spelling of a distribution's name, by which two are compared.

    Metadata, directories and requirements write ``boolean.py``, ``boolean_py`` and ``Boolean-Py`` for the
    same; the rule is that of PEP 503.
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _source() -> tuple[str, str]:
    """What was given to pip, as it noted beside the distribution, and the option that it was given with."""
    from importlib import metadata

    try:
        noted = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        noted = None
    origin = json.loads(noted) if noted else {}
    url = urlsplit(origin.get("url", ""))
    path = Path(unquote(url.path))
    if url.scheme != "file" or not path.exists():
        return NAME, ""
    return str(path), "--editable " if origin.get("dir_info", {}).get("editable") else ""

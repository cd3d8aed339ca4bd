"""What a process does that was forked to be a command; all that commands import is imported before."""

import importlib
import os
import pkgutil
import sys

import resolute.cli
import resolute.client
from resolute.cli.main import main

for _package in (resolute.cli, resolute.client):
    for _found in pkgutil.walk_packages(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_found.name)


def become(command: tuple[str, ...], cwd: str, environment: dict[str, str], out: str, err: str) -> None:
    """Becomes the command.

    Args:
        command: The command line.
        cwd: Its directory.
        environment: All of its variables.
        out: File that takes its standard output.
        err: File that takes its standard error.
    """
    for descriptor, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = list(command)
    main()

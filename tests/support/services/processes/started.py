"""Services as processes of their own, started as people start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_START_SECONDS = 30.0


@contextmanager
def service_process(package: str, variables: Mapping[str, str]) -> Iterator[str]:
    """Runs ``python -m <package>`` until the block ends, then expects it to end well on SIGTERM.

    Args:
        package: Import package of the service.
        variables: Its settings; the machine's own RESOLUTE_ variables are left out.

    Yields:
        The address that it printed.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", package],
        env=environment(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert " listens on " in line, f"{package} said {line!r}"
        yield line.rsplit(" ", 1)[1].strip()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=_START_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's variables without settings of services, and with those given."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("RESOLUTE_")}
    return {**inherited, **variables}

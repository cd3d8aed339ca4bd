"""Renews an unmanaged run and its token during long uploads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from resolute.client.connection.endpoint import Endpoint
from resolute.client.connection.session import Session
from resolute.client.remote.trials import StartedRun, Trials
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.run.directory import read_token
from resolute.core.unmanaged.sidecar import HEARTBEAT_SECONDS
from resolute.errors import ResoluteError

_log = logging.getLogger("resolute.core")


@contextmanager
def renewing(
    endpoint: Endpoint, begun: StartedRun, token_file: Path, *, pause: float = HEARTBEAT_SECONDS
) -> Iterator[None]:
    """Says again and again that a run continues, until the block ends.

    Args:
        endpoint: The cluster.
        begun: The run.
        token_file: Gets the run's token, now and whenever it is renewed.
        pause: Seconds between renewals.
    """
    done = threading.Event()

    def renew(trials: Trials) -> None:
        while not done.wait(pause):
            try:
                write_atomically(token_file, trials.renew(begun.trial.uuid, begun.run).token)
            except (ResoluteError, OSError) as failure:
                # The transfer itself fails if this goes on.
                _log.warning("a run that is being sent could not be renewed: %s", failure)

    write_atomically(token_file, begun.token)
    # As the run itself: no other caller may renew it.
    with Session(replace(endpoint, token=lambda: read_token(token_file))) as session:
        thread = threading.Thread(target=renew, args=(Trials(session),), name="renewal", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

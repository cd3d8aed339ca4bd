"""`resolute up` with its databases in PostgreSQL.

Run as ``python -m faults.harness.postgres_up resolute_embedded SLOTS``: control planes have that name.
"""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass

from faults.harness.fault_cluster import DATABASE_VARIABLE

from resolute.client.connection.home import Home
from resolute_embedded.cluster import Options, serve
from resolute_embedded.state_directory import StateDirectory
from resolute_serving.observability.logs import configure_logs


@dataclass(frozen=True)
class _State(StateDirectory):
    def database_url(self, service: str) -> str:
        """The same database for each service, which has a schema of its own."""
        return os.environ[DATABASE_VARIABLE]


def main() -> None:
    """Serves until a signal ends it."""
    configure_logs(level="WARNING", service="embedded")
    state = _State(Home.from_environment(os.environ))
    lock = state.lock
    lock.acquire()
    try:
        state.remove_leftovers()
        options = Options(slots=int(sys.argv[2]), no_http=True)
        asyncio.run(serve(state, options, ready=lambda *_: None))
    finally:
        lock.release()


if __name__ == "__main__":
    main()

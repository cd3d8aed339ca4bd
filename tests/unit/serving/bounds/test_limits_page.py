"""The page for operators has the limits that the code has."""

from __future__ import annotations

from pathlib import Path

from resolute.contracts.documents.document import MAX_NODES
from resolute_gateway.web.held_bodies import MAX_BYTES, MAX_BYTES_OF_ADDRESS
from resolute_searcher.planning.answers import MAX_SIMULATED_TRIALS
from resolute_searcher.planning.importance import MAX_HPARAMS, MAX_TRIALS
from resolute_searcher.service import ESTIMATE_LIMITS
from resolute_searcher.servicers.importances import MAX_WAITING
from resolute_searcher.spec.sizes import MAX_INITIAL_BYTES, MAX_SAMPLE_BYTES
from resolute_serving.bounds.callers import MOST_AWAITED_OF_CALLER, MOST_CALLS_OF_CALLER
from resolute_serving.bounds.limits import (
    DEFAULT,
    LIMITS,
    MAX_BYTES_IN_PROGRESS,
    MAX_DEPTH,
    MAX_MESSAGE_BYTES,
    MIB,
)
from resolute_serving.bounds.streams import StreamLimits
from resolute_serving.database.engine import MAX_WAITING_WRITES
from resolute_serving.workers.pool import MAX_WAITING_OF_CALLER
from resolute_serving.workers.process import WorkerLimits

PAGE = Path(__file__).parents[4] / "docs" / "operations.md"


def test_the_table_of_limits_is_that_of_the_code() -> None:
    section = PAGE.read_text().split("## Limits of calls")[1].split("\n## ")[0]
    rows = [row.split("|")[2].strip() for row in section.splitlines() if row.startswith("|")]
    worker = WorkerLimits()
    assert rows[2:] == [
        f"{MAX_MESSAGE_BYTES // MIB} MiB",
        f"{DEFAULT.message_bytes // MIB} MiB",
        spaced(DEFAULT.elements),
        spaced(max(limits.elements for limits in LIMITS.values())),
        f"{MAX_DEPTH} levels",
        f"{MAX_BYTES_IN_PROGRESS // MIB} MiB",
        f"{MAX_BYTES // MIB} and {MAX_BYTES_OF_ADDRESS // MIB} MiB",
        spaced(MAX_WAITING_WRITES),
        spaced(StreamLimits.total),
        spaced(StreamLimits.of_address),
        spaced(StreamLimits.of_user),
        spaced(MOST_CALLS_OF_CALLER),
        spaced(MOST_AWAITED_OF_CALLER),
        spaced(MAX_NODES),
        f"{MAX_SAMPLE_BYTES // MIB} MiB",
        f"{MAX_INITIAL_BYTES // MIB} MiB",
        spaced(MAX_SIMULATED_TRIALS),
        f"{worker.cpu_seconds} s",
        f"{(worker.memory_bytes or 0) // MIB} MiB",
        f"{ESTIMATE_LIMITS.cpu_seconds} s",
        f"{MAX_TRIALS} and {MAX_HPARAMS}",
        str(MAX_WAITING),
        f"1, and {MAX_WAITING_OF_CALLER} that wait",
    ]


def spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")

"""The batches that a trial leaves out after it went back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute_experiments.store.runs import Run


def skipped_batches(
    guard: Mapping[str, Any] | None, earlier: Iterable[Run]
) -> list[LaunchSpec.SkippedBatches]:
    """The batches that the next run of a trial leaves out, wherever it begins.

    Each time they are those before the bad report; where the trial began again after the first of these, it
    leaves out as many from there on.

    Args:
        guard: The section of the config; None for no guard.
        earlier: The runs of the trial before the next one.
    """
    count = int(guard["skip_batches"]) if guard else 0
    if not count:
        return []
    firsts = [
        max(run.kept_steps or 0, run.bad_steps - count, 0) for run in earlier if run.bad_steps is not None
    ]
    return [LaunchSpec.SkippedBatches(first=first, end=first + count) for first in firsts]

"""The messages of experiments in lists."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiment_pb2
from resolute_experiments.scheduling.wait_reasons import WaitReasons, has_waiting_trials
from resolute_experiments.servicers.messages.experiments import experiment_message
from resolute_experiments.store import experiments, runs
from resolute_experiments.store.experiments import Version

_MOST_BYTES = 4 * 1024 * 1024
"""Of the messages that are kept, as they are sent; in memory they take several times as much."""


@dataclass(frozen=True)
class _Summary:
    message: experiment_pb2.Experiment
    """Without the reason for which its trials wait, which the scheduler finds anew."""
    waits: bool
    """Whether one of its trials waits."""


class Summaries:
    """Builds the message of an experiment once for each of its versions.

    Args:
        wait_reasons: The reasons why trials wait.
    """

    def __init__(self, wait_reasons: WaitReasons) -> None:
        self._wait_reasons = wait_reasons
        self._kept: dict[Version, _Summary] = {}
        self._bytes = 0

    def add_to(self, messages: Any, connection: Connection, versions: Sequence[Version]) -> None:
        """Adds the messages of experiments to those of a response.

        Args:
            messages: The repeated field of the response.
            connection: The transaction that has read the versions.
            versions: Which experiments.
        """
        kept = [self._kept.get(version) for version in versions]
        missing = [version.id for version, summary in zip(versions, kept, strict=True) if summary is None]
        made = self._make(connection, missing) if missing else {}
        shown = [summary or made[version.id] for version, summary in zip(versions, kept, strict=True)]
        messages.extend([summary.message for summary in shown])
        for position, summary in enumerate(shown):
            if summary.waits:
                reason = self._wait_reasons.first_wait_reason(versions[position].id)
                messages[position].wait_reason = reason

    def _make(self, connection: Connection, ids: Collection[str]) -> Mapping[str, _Summary]:
        # The experiments before their trials: on PostgreSQL what is read later may be newer, and a message
        # that is newer than its version is replaced with the next version.
        read = experiments.summaries(connection, ids)
        counts = experiments.trial_counts(connection, ids)
        times = runs.times_of_experiments(connection, ids)
        made: dict[str, _Summary] = {}
        for experiment in read:
            own = counts.get(experiment.id, {})
            # Not by the reason itself, which the scheduler may find later than this version.
            waits = has_waiting_trials(experiment, own)
            made[experiment.id] = summary = _Summary(
                experiment_message(experiment, own, times=times.get(experiment.id)), waits
            )
            self._keep(experiments.version_of(experiment), summary)
        return made

    def _keep(self, version: Version, summary: _Summary) -> None:
        size = summary.message.ByteSize()
        if self._bytes + size > _MOST_BYTES:
            self._kept, self._bytes = {}, 0
        self._kept[version] = summary
        self._bytes += size

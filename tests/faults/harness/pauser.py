"""A person who pauses the search and lets it continue, as often as they like."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from faults.harness.service_queries import channel_to
from support.clusters.embedded import EmbeddedCluster
from support.waiting import wait_until

from resolute.api.experiments.v1 import experiment_pb2, experiments_service_pb2_grpc
from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.errors import FailedPreconditionError, ResoluteError, UnavailableError

_MEAN_SECONDS_ACTIVE = 30.0
_MEAN_SECONDS_PAUSED = 1.0


class Pauser:
    """Pauses and activates an experiment in turn, at random times.

    Args:
        cluster: What they ask; its address may change.
        experiment: UUID of the experiment; it is active.
        dice: Decides when.
    """

    def __init__(self, cluster: EmbeddedCluster, experiment: str, *, dice: random.Random) -> None:
        self._cluster = cluster
        self._key = experiment_pb2.ExperimentKey(experiment_id=experiment)
        self._dice = dice
        self._wants_active = True
        self._due = self._next()
        self.pauses = 0
        """How often they paused it."""

    def tick(self, *, most: int) -> None:
        """Changes their mind if it is time, and asks until they are answered.

        Args:
            most: Pauses that are allowed so far: they go with the search's progress. On a slow machine trials
                might otherwise be paused again before they have started.
        """
        if time.monotonic() < self._due or (self._wants_active and self.pauses >= most):
            return
        try:
            with self._experiments() as stub:
                if self._wants_active:
                    stub.PauseExperiment(pb2.PauseExperimentRequest(experiment=self._key))
                    self.pauses += 1
                else:
                    stub.ActivateExperiment(pb2.ActivateExperimentRequest(experiment=self._key))
        except ResoluteError:
            return  # Nobody answers. It may have been done all the same: asking again does no harm.
        self._wants_active = not self._wants_active
        self._due = self._next()

    def leave(self) -> None:
        """Lets it continue for good, unless it has ended; the services are up."""
        wait_until(self._activated, what="somebody to activate the experiment")

    def _activated(self) -> bool:
        try:
            with self._experiments() as stub:
                stub.ActivateExperiment(pb2.ActivateExperimentRequest(experiment=self._key))
        except FailedPreconditionError:
            return True
        except UnavailableError:
            return False
        return True

    @contextmanager
    def _experiments(self) -> Iterator[experiments_service_pb2_grpc.ExperimentsServiceStub]:
        with channel_to(self._cluster) as channel:
            yield experiments_service_pb2_grpc.ExperimentsServiceStub(channel)

    def _next(self) -> float:
        mean = _MEAN_SECONDS_ACTIVE if self._wants_active else _MEAN_SECONDS_PAUSED
        return time.monotonic() + self._dice.expovariate(1 / mean)

"""Trials of several nodes each, of two clusters on one machine: the same addresses, never the same port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.clusters.distributed import (
    DEEPSPEED,
    HOROVOD,
    TORCHRUN,
    DistributedScript,
    DistributedTrial,
    environment_of,
)
from support.clusters.embedded import EmbeddedCluster, embedded

from resolute.client import ExperimentState

LONG_ENOUGH_TO_LOOK = "hyperparameters.seconds_per_step=0.05"
BUSY = 240.0
"""Seconds that four ranks may take on two cores."""


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[EmbeddedCluster]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(embedded(tmp_path_factory.mktemp("home"), slots=2, RESOLUTE_LOCAL_NODES="2"))
            for _ in range(2)
        ]


@pytest.mark.parametrize(
    "script", [TORCHRUN, HOROVOD, DEEPSPEED], ids=["torch_distributed", "horovod", "deepspeed"]
)
def test_two_worlds_at_a_time_have_the_same_addresses_and_never_the_same_port(
    clusters: list[EmbeddedCluster], script: DistributedScript
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(cluster.client()) for cluster in clusters]
        trials = [
            DistributedTrial.create(cluster, client, script, LONG_ENOUGH_TO_LOOK, "max_restarts=0")
            for cluster, client in zip(clusters, clients, strict=True)
        ]
        told = [ports_of(trial) for trial in trials]
        assert all(len(ports) == 3 for ports in told)
        assert not told[0] & told[1]
        for trial in trials:
            trial.wait_for(ExperimentState.COMPLETED, timeout=BUSY)
            assert trial.logged_steps("finished at step") == [200, 200]
            assert trial.reported("training") == list(range(10, 201, 10))


def ports_of(trial: DistributedTrial) -> set[str]:
    """The ports that the ranks of a trial were told, all ranks the same."""
    found = set()
    for rank in (0, 1):
        environment = environment_of(trial.process_of(rank))
        assert environment["DET_CHIEF_IP"] == "127.0.0.1"
        ports = f"{environment['C10D_PORT']},{environment['RESOLUTE_COLLECTIVE_PORTS']}"
        found.add(frozenset(ports.split(",")))
    (ports_told,) = found
    return set(ports_told)

"""The start barrier: it holds the shell of a run until all containers are ready, and then releases it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from secrets import token_hex

from resolute.api.experiments.v1.allocations_service_pb2 import RendezvousResponse
from resolute.contracts.clock import Clock
from resolute.runtime.redaction import Secrets
from resolute_launch.container.entrypoint_process import EntrypointProcess
from resolute_launch.container.environment import rendezvous_environment
from resolute_launch.container.task import Task
from resolute_launch.container.task_info import cluster_info
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.supervisor.exit_summary import Observations
from resolute_launch.supervisor.joining.ports import ReservedPorts
from resolute_launch.supervisor.joining.rendezvous import Rendezvous


class StartBarrier:
    """Releases the shell once the startup hook has finished and all containers have joined the rendezvous.

    Args:
        task: The run's task.
        control: The control plane.
        observations: The observations for the exit summary.
        notify: Called, from any thread, when ``try_release`` may succeed.
        secrets: Receives the key of the collectives.
        clock: Measures the rendezvous.
    """

    def __init__(
        self,
        task: Task,
        *,
        control: ControlPlane,
        observations: Observations,
        notify: Callable[[], None],
        secrets: Secrets,
        clock: Clock,
    ) -> None:
        self._task, self._control, self._observations, self._notify = task, control, observations, notify
        self._secrets = secrets
        self._hook_finished = threading.Event()
        self._ports = ReservedPorts(task.order.bind_address)
        self._rendezvous = Rendezvous(
            self._announce,
            rank=task.order.container_rank,
            timeout=task.order.rendezvous_timeout_seconds,
            clock=clock,
            done=notify,
        )

    def mark_hook_finished(self) -> None:
        """Records that the startup hook has finished."""
        self._hook_finished.set()
        self._notify()

    def hook_has_finished(self) -> bool:
        """Tells once, and then no more, that the startup hook has finished."""
        if self._observations.hook_finished or not self._hook_finished.is_set():
            return False
        self._observations.hook_finished = True
        return True

    def try_release(self, child: EntrypointProcess, argv: Sequence[str]) -> bool:
        """Releases the shell if all conditions hold.

        Returns:
            Whether this call released it.
        """
        if (
            not self._observations.hook_finished
            or self._observations.released
            or self._observations.start_cancelled
        ):
            return False
        if self._task.single_container:
            self._release(child, argv, [self._ports.numbers], key=token_hex(16))
            return True
        self._rendezvous.start()
        if self._rendezvous.failure:
            self._observations.start_failure = self._rendezvous.failure
        result = self._rendezvous.result
        if result is None:
            return False
        cluster_info(self._task, rendezvous=result.info).write(self._task.run.info)
        self._release(child, argv, result.ports, key=self._task.spec.collective_key)
        return True

    def close(self) -> None:
        """Ends the rendezvous and frees the ports."""
        self._rendezvous.stop()
        self._ports.close()

    def _announce(self) -> RendezvousResponse:
        return self._control.rendezvous(
            address=self._task.order.bind_address,
            slot_count=len(self._task.order.slot_ids),
            ports=self._ports.numbers,
        )

    def _release(
        self, child: EntrypointProcess, argv: Sequence[str], ports: Sequence[Sequence[int]], *, key: str
    ) -> None:
        self._observations.released = True
        self._ports.release()
        self._secrets.add(key)
        child.release(argv, rendezvous_environment(ports, key=key))

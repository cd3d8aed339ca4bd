"""Where the shell of a run waits for the other containers, and is let through to become the entrypoint."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from secrets import token_hex

from resolute.api.experiments.v1.allocations_service_pb2 import RendezvousResponse
from resolute.contracts.clock import Clock
from resolute_launch.container.entrypoint_process import EntrypointProcess
from resolute_launch.container.environment import rendezvous_environment
from resolute_launch.container.task import Task
from resolute_launch.container.task_info import cluster_info
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.redaction import Secrets
from resolute_launch.supervisor.exit_summary import Observations
from resolute_launch.supervisor.ports import ReservedPorts
from resolute_launch.supervisor.rendezvous import Rendezvous


class StartBarrier:
    """Lets the shell through once the hook is done and all containers are there.

    Args:
        task: The run's task.
        control: The control plane.
        seen: Takes what was seen.
        notify: Called, from any thread, when ``try_release`` should be tried.
        secrets: Takes the key of the collectives.
        clock: Measures the rendezvous.
    """

    def __init__(
        self,
        task: Task,
        *,
        control: ControlPlane,
        seen: Observations,
        notify: Callable[[], None],
        secrets: Secrets,
        clock: Clock,
    ) -> None:
        self._task, self._control, self._seen, self._notify = task, control, seen, notify
        self._secrets = secrets
        self._opened = threading.Event()
        self._ports = ReservedPorts(task.order.bind_address)
        self._rendezvous = Rendezvous(
            self._announce,
            rank=task.order.container_rank,
            timeout=task.order.rendezvous_timeout_seconds,
            clock=clock,
            done=notify,
        )

    def open(self) -> None:
        """Notes that the hook is done."""
        self._opened.set()
        self._notify()

    def try_release(self, child: EntrypointProcess, argv: Sequence[str]) -> bool:
        """Lets the shell through if nothing is in the way any more.

        Returns:
            Whether it went through just now.
        """
        if self._opened.is_set():
            self._seen.hook_finished = True
        if not self._seen.hook_finished or self._seen.released or self._seen.start_cancelled:
            return False
        if self._task.alone:
            self._release(child, argv, [self._ports.numbers], key=token_hex(16))
            return True
        self._rendezvous.start()
        if self._rendezvous.failure:
            self._seen.start_failure = self._rendezvous.failure
        result = self._rendezvous.result
        if result is None:
            return False
        cluster_info(self._task, rendezvous=result.info).write(self._task.run.info)
        self._release(child, argv, result.ports, key=self._task.spec.collective_key)
        return True

    def close(self) -> None:
        """Ends the rendezvous and gives the ports back."""
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
        self._seen.released = True
        self._ports.release()
        self._secrets.add(key)
        child.release(argv, rendezvous_environment(ports, key=key))

"""Where the shell of a run waits for the other containers, and is let through to become the entrypoint."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from secrets import token_hex

from resolute.api.experiments.v1.allocations_service_pb2 import RendezvousResponse
from resolute.clock import Clock
from resolute_launch.child import Child
from resolute_launch.control_plane import ControlPlane
from resolute_launch.environment import rendezvous_environment
from resolute_launch.ports import ReservedPorts
from resolute_launch.rendezvous import Rendezvous
from resolute_launch.secrecy import Secrets
from resolute_launch.task import Task
from resolute_launch.task_info import cluster_info
from resolute_launch.verdict import Observations


class Gate:
    """Lets the shell through once the hook is done and all containers are there.

    Args:
        task: The run's task.
        control: The control plane.
        seen: Takes what was seen.
        notify: Called, from any thread, when ``pass_through`` should be tried.
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

    def pass_through(self, child: Child, argv: Sequence[str]) -> bool:
        """Lets the shell through if nothing is in the way any more.

        Returns:
            Whether it went through just now.
        """
        if self._opened.is_set():
            self._seen.gate_opened = True
        if not self._seen.gate_opened or self._seen.released or self._seen.pointless:
            return False
        if self._task.alone:
            self._release(child, argv, [self._ports.numbers], key=token_hex(16))
            return True
        self._rendezvous.start()
        if self._rendezvous.failure:
            self._seen.obstacle = self._rendezvous.failure
        meeting = self._rendezvous.meeting
        if meeting is None:
            return False
        cluster_info(self._task, rendezvous=meeting.info).write(self._task.run.info)
        self._release(child, argv, meeting.ports, key=self._task.spec.collective_key)
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
        self, child: Child, argv: Sequence[str], ports: Sequence[Sequence[int]], *, key: str
    ) -> None:
        self._seen.released = True
        self._ports.release()
        self._secrets.add(key)
        child.release(argv, rendezvous_environment(ports, key=key))

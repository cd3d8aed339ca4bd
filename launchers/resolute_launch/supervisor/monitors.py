"""The monitors of a run: its machine, its GPUs, and the progress of its processes."""

from __future__ import annotations

import socket
from collections.abc import Callable

from resolute.contracts.clock import Clock
from resolute.contracts.processes import ProcessTree
from resolute.runtime.gpu_readings import Gpus
from resolute_launch.container.output import OutputCollector
from resolute_launch.container.task import Task
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.gpus.idleness import Idleness, UtilizationPolicy
from resolute_launch.gpus.meter import GpuMeter
from resolute_launch.hangs.watch import HangWatch
from resolute_launch.machine.meter import MachineMeter
from resolute_launch.machine.probe import MachineProbe, MetadataProbe
from resolute_launch.machine.readings import Readings
from resolute_launch.supervisor.lease import LeaseRenewer

_REPORT_SECONDS = 5.0
"""How long the end of a very short run waits for the report of its machine."""


class Monitors:
    """The threads that watch a run. They are independent of each other.

    Args:
        task: The run's task.
        control: Receives the reports of the machine.
        lease: Receives the reports of hangs and of idle GPUs.
        output: The output of the run, to which remarks are added.
        leave_machine: Called once the machine will be taken away.
        end_hung: Called with the reason when a run that hangs must end.
        clock: Tells the time.
    """

    def __init__(
        self,
        task: Task,
        *,
        control: ControlPlane,
        lease: LeaseRenewer,
        output: OutputCollector,
        leave_machine: Callable[[], None],
        end_hung: Callable[[str], None],
        clock: Clock,
    ) -> None:
        devices = task.order.devices
        policy = UtilizationPolicy.of(task.config)
        self._has_gpus = bool(devices)
        self._probe = MachineProbe(
            MetadataProbe.of(task.config), notice=leave_machine, log_line=output.log_line, clock=clock
        )
        self.gpus = GpuMeter(
            lambda: Gpus(devices, clock=clock),
            clock=clock,
            idleness=None if policy is None else Idleness(policy, report=lease.report_idle),
        )
        self._machine = MachineMeter(
            lambda: Readings(devices, clock=clock),
            report=control.report_machine_usage,
            node=task.order.agent_id or socket.gethostname(),
            clock=clock,
        )
        self._hangs = HangWatch(
            task,
            output=lambda: output.count,
            log_line=output.log_line,
            report=lease.report_hang,
            end=end_hung,
            clock=clock,
        )

    def start(self) -> None:
        """Begins to watch the machine and its GPUs."""
        self._probe.start()
        if self._has_gpus:
            self.gpus.start()
        self._machine.start()

    def entrypoint_runs(self, tree: ProcessTree) -> None:
        """Begins to watch the processes of the entrypoint, and lets idle GPUs count."""
        self._hangs.start(tree)
        self.gpus.entrypoint_runs()

    def entrypoint_ended(self) -> str:
        """Ends the watch of processes.

        Returns:
            What kept a run that stood still when it ended; empty if it moved or that was reported.
        """
        self._hangs.stop()
        return self._hangs.early_diagnosis

    def finish(self) -> None:
        """Ends the readings of the machine, and waits a short time for the last report."""
        self._machine.stop(_REPORT_SECONDS)

    def stop(self) -> None:
        """Ends what still runs, without waiting for reports."""
        self.gpus.stop()
        self._machine.stop(0.0)
        self._probe.stop()

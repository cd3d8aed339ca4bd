"""A supervisor renews its lease and its token at once when the machine was suspended or its clock was set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.clocks import JumpingClock
from support.clusters.control_plane import control_plane
from support.waiting import wait_until

from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.rpc.channel import open_channel
from resolute.runtime.redaction import Secrets
from resolute_launch.container.task import Task
from resolute_launch.control_plane.client import ControlPlane
from resolute_launch.control_plane.connection import ControlPlaneConnection
from resolute_launch.control_plane.outage_timeout import OutageTimeout
from resolute_launch.control_plane.signal_state import SignalState
from resolute_launch.supervisor.lease import LeaseRenewer

HOUR, DAY = 3600.0, 86_400.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("jump", "seconds"),
    [
        *((JumpingClock.jump, seconds) for seconds in (3 * HOUR, DAY, -3 * HOUR, -DAY)),
        *((JumpingClock.jump_uptime, seconds) for seconds in (3 * HOUR, DAY)),
    ],
)
def test_a_clock_that_jumps_lets_the_lease_be_renewed_at_once(
    tmp_path: Path, jump: Callable[[JumpingClock, float], None], seconds: float
) -> None:
    """By the monotonic clock, which stands still during a suspend, the next renewal is hours away."""
    clock = JumpingClock()
    with control_plane("true", lease_ttl=3.0 * 86_400) as plane:
        run = RunDirectory(tmp_path / "run")
        run.prepare()
        order = LaunchOrder(allocation_id=plane.spec.allocation_id, master=plane.address, token="token-0")
        with open_channel(plane.address, token=run.read_token) as channel:
            renewer = LeaseRenewer(
                Task(plane.spec, order, run),
                ControlPlaneConnection(channel, ControlPlane(channel, order), OutageTimeout(60, clock=clock)),
                signal_state=SignalState(Flags(run.flags_file), clock=clock, preemption_timeout=60),
                secrets=Secrets(),
                notify=lambda: None,
                clock=clock,
            )
            renewer.start()
            try:
                wait_until(lambda: run.read_token() == "token-1")

                def jumped() -> bool:
                    # Again and again: the renewer may be about to note when it is due next.
                    jump(clock, seconds)
                    return run.read_token() != "token-1"

                wait_until(jumped, pause=0.5, what="another renewal")
            finally:
                renewer.stop()

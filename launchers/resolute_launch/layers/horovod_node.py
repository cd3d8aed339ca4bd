"""Starts one container's part of a Horovod job that spans several.

    python -m resolute_launch.layers.horovod_node NODE ADDRESS PORT HORVODRUN_ARGUMENTS...

horovodrun itself starts the ranks of other machines by ssh, with their whole environment in command lines.
Here every container starts its own ranks, as with torchrun and DeepSpeed, so no container needs access to
another one. horovodrun's own parser reads the arguments. Its rendezvous server runs in the first container,
at the address and port that all containers know.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from resolute.contracts.calls.backoff import Backoff, retry
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_launch.layers.interfaces import interface_to
from resolute_launch.processes.child_process import start_child
from resolute_launch.processes.grace_period import layer_grace_period, supervisor_grace_period
from resolute_launch.processes.shutdown_sequence import ShutdownSequence, ShutdownStep

_POLL_SECONDS = 0.1


def host_name(node: int) -> str:
    """The name of a container within the job. Addresses are not unique: containers may share one."""
    return f"node{node}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs this container's ranks; returns the exit code of the first that failed, else 0."""
    node, address, port, *words = sys.argv[1:] if arguments is None else arguments
    job = _parse(words)
    slots = _assignments(job)
    mine = [slot for slot in slots if slot.hostname == host_name(int(node))]
    reason = _unsupported_reason(job, address)
    if not mine:
        reason = f"no rank of {job.hosts} is left for container {node} of this run"
    if reason:
        sys.stderr.write(f"determined.launch.horovod: {reason}\n")
        return 1
    with _rendezvous_server(
        slots, address=address, port=int(port), here=node == "0", timeout=_start_timeout(job)
    ) as serve:
        environ = _job_environment(job, address=address, port=port)
        grace = layer_grace_period(layer_grace_period(supervisor_grace_period(os.environ)))
        ranks = _Ranks(clock=SYSTEM_CLOCK, grace=grace)
        ranks.start(job.command, environ, mine)
        # Only now: what leads processes must not fork with a second thread beside it.
        serve()
        return ranks.wait()


def _parse(words: Sequence[str]) -> Namespace:
    from horovod.runner import launch

    before = sys.argv
    sys.argv = ["horovodrun", *words]
    try:
        parsed: Namespace = launch.parse_args()
        return parsed
    finally:
        sys.argv = before


def _unsupported_reason(job: Namespace, address: str) -> str:
    """Why a job cannot be started in parts; empty if it can."""
    if job.use_mpi or job.use_jsrun:
        return "--mpi and --jsrun reach other containers by themselves, which those of this run do not allow"
    if job.host_discovery_script or job.min_num_proc is not None:
        return "elastic jobs look for machines by themselves; the containers of this run are given"
    name, known_as = socket.gethostname(), _address_of_name()
    if known_as.startswith("127.") and not address.startswith("127."):
        return (
            f"the name of this machine, {name}, stands for {known_as}, where other containers cannot reach "
            "it, and Horovod looks it up whatever interface is named: let the name stand for an address of "
            "their network (in /etc/hosts), or launch with determined.launch.torch_distributed"
        )
    return ""


def _address_of_name() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def _assignments(job: Namespace) -> list[Any]:
    from horovod.runner.common.util import hosts

    slots: list[Any] = hosts.get_host_assignments(hosts.parse_hosts(job.hosts), job.num_proc, job.num_proc)
    return slots


def _start_timeout(job: Namespace) -> float:
    return float(job.start_timeout or os.environ.get("HOROVOD_START_TIMEOUT") or 30)


@contextmanager
def _rendezvous_server(
    slots: list[Any], *, address: str, port: int, here: bool, timeout: float
) -> Iterator[Callable[[], None]]:
    """Opens the port of the rendezvous for the block, or waits until the first container has done so.

    Yields:
        Begins to serve it, in a thread; who comes before that is in line.

    Raises:
        SystemExit: It did not come in time.
    """
    if not here:
        _wait_for(address, port, timeout=timeout, clock=SYSTEM_CLOCK)
        yield lambda: None
        return
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

    server = RendezvousHTTPServer((address, port), RendezvousHandler, 0)
    server.init(slots)
    thread = threading.Thread(target=server.serve_forever, name="horovod-rendezvous", daemon=True)
    try:
        yield thread.start
    finally:
        if thread.ident is not None:
            server.shutdown()
            thread.join()
        server.server_close()


def _wait_for(address: str, port: int, *, timeout: float, clock: Clock) -> None:
    def connect() -> None:
        socket.create_connection((address, port), timeout=5.0).close()

    try:
        retry(
            connect,
            backoff=Backoff(longest=1.0, clock=clock),
            outage_timeout=timeout,
            retried=(OSError,),
        )
    except OSError:
        sys.exit(
            f"determined.launch.horovod: the first container did not serve the job's rendezvous at "
            f"{address}:{port} within {timeout:g} s (--start-timeout); look at its log"
        )


def _job_environment(job: Namespace, *, address: str, port: str) -> dict[str, str]:
    """The variables that all ranks of this container share."""
    from horovod.runner import gloo_run
    from horovod.runner.common.util import config_parser

    environ = dict(os.environ)
    config_parser.set_env_from_args(environ, job)
    interfaces = sorted(job.nics) if job.nics else [_interface(address)]
    environ.update({k: str(v) for k, v in gloo_run.create_run_env_vars(address, interfaces, port).items()})
    return environ


def _interface(address: str) -> str:
    interface = interface_to(address)
    if not interface:
        sys.exit(
            f"determined.launch.horovod: no network interface was found by which this machine reaches "
            f"{address}; name one: --network-interfaces NAME --"
        )
    return interface


class _Ranks:
    """The processes of this container's ranks. When one fails, the others are stopped."""

    def __init__(self, *, clock: Clock, grace: float) -> None:
        self._shutdown_sequence = ShutdownSequence(clock, grace=grace)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._early_signals: list[signal.Signals] | None = []

    def start(self, command: Sequence[str], environ: Mapping[str, str], slots: list[Any]) -> None:
        from horovod.runner import gloo_run

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        for slot in slots:
            mine = {**environ, **gloo_run.create_slot_env_vars(slot)}
            self._processes.append(start_child(command, environ=mine, parent_death_signal=signal.SIGTERM))
        early, self._early_signals = self._early_signals, None
        for number in early or ():
            self._send(number)

    def _on_signal(self, number: int, _frame: object) -> None:
        if self._early_signals is not None:
            # Ranks that are yet to be started have to hear of it too.
            self._early_signals.append(signal.Signals(number))
            return
        # Anyone who sends it decides how long the ranks may take.
        self._send(signal.Signals(number))

    def wait(self) -> int:
        failed = 0
        while running := self._running():
            with contextlib.suppress(subprocess.TimeoutExpired):
                running[0].wait(_POLL_SECONDS)
            if not failed and (failed := self._failed()):
                self._shutdown_sequence.terminate_in(0)
            step = self._shutdown_sequence.due()
            if step is not ShutdownStep.NONE:
                self._send(signal.SIGTERM if step is ShutdownStep.TERMINATE else signal.SIGKILL)
        return failed or self._failed()

    def _running(self) -> list[subprocess.Popen[bytes]]:
        return [process for process in self._processes if process.poll() is None]

    def _failed(self) -> int:
        code = next((process.returncode for process in self._processes if process.returncode), 0)
        return 128 - code if code < 0 else code

    def _send(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)


if __name__ == "__main__":
    sys.exit(main())

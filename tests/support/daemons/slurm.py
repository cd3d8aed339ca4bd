"""A real Slurm of four nodes on this machine: processes of the test's own, on loopback, in one directory."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from support.backends import missing
from support.daemons.slurm_accounting import PROGRAMS as ACCOUNTING_PROGRAMS
from support.daemons.slurm_accounting import SlurmAccounting
from support.ports import free_port
from support.processes.suspension import suspend
from support.waiting import wait_until

NODES = 4
_START_SECONDS = 120.0
_END_SECONDS = 30.0
_SEARCH_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_CONF = """\
ClusterName=resolute
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket,cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool-%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/%n.log
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=10000,preempt_send_user_signal
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdTimeout=10
KillWait=2
{accounting}
JobAcctGatherType=jobacct_gather/none
{nodes}
PartitionName=batch Nodes=ALL Default=YES PriorityTier=1
PartitionName=spot Nodes=ALL PriorityTier=1 GraceTime=60
PartitionName=hasty Nodes=ALL PriorityTier=1 GraceTime=1
PartitionName=urgent Nodes=ALL PriorityTier=10
"""

_NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"


class SlurmCluster:
    """A running Slurm.

    Args:
        directory: Holds all of it.
        accounting: Keeps its jobs, which its controller then forgets after seconds; None for nothing.
    """

    def __init__(self, directory: Path, *, accounting: SlurmAccounting | None = None) -> None:
        self.directory = directory
        self.accounting = accounting
        self.environment = {
            "PATH": _SEARCH_PATH,
            "SLURM_CONF": str(directory / "slurm.conf"),
            "LC_ALL": "C.UTF-8",
        }
        """What Slurm's commands need to find this one."""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def configure(self) -> None:
        """Writes the configuration and the key of its messages."""
        key = self.directory / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(64))
        (self.directory / "state").mkdir()
        host = socket.gethostname().partition(".")[0]
        nodes = "\n".join(
            f"NodeName=node{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=4"
            for number in range(NODES)
        )
        (self.directory / "slurm.conf").write_text(
            _CONF.format(
                host=host,
                port=free_port(),
                user=getpass.getuser(),
                directory=self.directory,
                nodes=nodes,
                accounting=self.accounting.settings if self.accounting else _NO_ACCOUNTING,
            )
        )

    def start(self) -> None:
        """Starts its daemons; returns once every node takes jobs."""
        at = self.directory
        self._spawn(
            "munged",
            [
                *("munged", "--foreground", "--force"),
                *(f"--socket={at}/munge.socket", f"--key-file={at}/munge.key"),
                *(f"--pid-file={at}/munged.pid", f"--log-file={at}/munged.log"),
                f"--seed-file={at}/munged.seed",
            ],
        )
        wait_until((at / "munge.socket").exists, what="munged", seconds=_START_SECONDS)
        if self.accounting:
            # A controller that has never heard of its accounting does not start without it.
            self.accounting.start(self.environment)
        self.start_controller()
        for number in range(NODES):
            self.start_node(number)
        wait_until(self.all_idle, what="Slurm's nodes", seconds=_START_SECONDS, pause=0.2)

    def start_controller(self) -> None:
        """Starts the controller, which goes on with what it had saved."""
        self._spawn("slurmctld", ["slurmctld", "-D"])

    def stop_controller(self) -> None:
        """Ends the controller, which saves what it knows: killed, it would forget the last seconds."""
        process = self._processes.pop("slurmctld")
        process.terminate()
        process.wait(_END_SECONDS)

    @contextmanager
    def controller_suspended(self) -> Iterator[None]:
        """Has the controller take connections and answer none, as one that has too much to do."""
        process = self._processes["slurmctld"]
        suspend(process.pid)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def start_node(self, number: int) -> None:
        """Starts the daemon of a node."""
        self._spawn(f"node{number}", ["slurmd", "-D", "-N", f"node{number}"])

    def kill(self, name: str, *, jobs: bool = True) -> None:
        """Ends a daemon at once: ``slurmctld``, or a node such as ``node0`` with all that runs on it.

        Args:
            name: The daemon.
            jobs: Whether the jobs of a node end with it.
        """
        process = self._processes.pop(name)
        process.kill()
        process.wait(_END_SECONDS)
        for each in self._processes_of_jobs(name) if jobs else ():
            with suppress(psutil.NoSuchProcess):
                each.kill()

    def stop(self) -> None:
        """Ends everything that was started, and what jobs have left."""
        for name in list(self._processes):
            self.kill(name)
        if self.accounting:
            self.accounting.stop()

    def all_idle(self) -> bool:
        """Whether every node takes jobs and has none; a daemon that ended by itself fails the test."""
        for name, process in self._processes.items():
            if process.poll() is not None:
                output = (self.directory / f"{name}.out").read_text(errors="replace")
                raise AssertionError(f"{name} ended with {process.returncode}: {output[-2000:]}")
        done = subprocess.run(
            ["sinfo", "--noheader", "--states=idle", "--format=%D"],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.stdout.strip() == str(NODES)

    def _processes_of_jobs(self, node: str) -> list[psutil.Process]:
        """What runs on a node: it outlives the node's daemon."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                environment = process.environ()
                if (
                    environment.get("SLURMD_NODENAME") == node
                    and environment.get("SLURM_CONF") == self.environment["SLURM_CONF"]
                ):
                    parent = process.parent()
                    # Its title has overwritten its own environment: only its child tells whose it is.
                    found += [parent] if parent and "slurmstepd" in " ".join(parent.cmdline()) else []
                    found.append(process)
        return found

    def _spawn(self, name: str, command: Sequence[str]) -> None:
        with (self.directory / f"{name}.out").open("ab") as output:
            self._processes[name] = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )


@contextmanager
def running_slurm(*, accounting: bool = False) -> Iterator[SlurmCluster]:
    """A Slurm of its own; skips where it is not installed.

    Args:
        accounting: Whether it has accounting, and a controller that forgets jobs after seconds.
    """
    for program in ("slurmctld", "slurmd", "sbatch", "munged", *(ACCOUNTING_PROGRAMS if accounting else ())):
        if shutil.which(program, path=_SEARCH_PATH) is None:
            missing(f"Slurm is missing: no {program}; tools/install_engines.sh installs it")
    # Not pytest's own directory: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        directory = Path(folder)
        cluster = SlurmCluster(directory, accounting=SlurmAccounting(directory) if accounting else None)
        cluster.configure()
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()

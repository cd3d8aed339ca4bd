"""Kills and stops random processes of a cluster, and starts again what does not come back by itself."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from faults.harness.cluster_processes import ClusterProcess, Role, processes_of
from faults.harness.engines.local import LocalEngine
from faults.harness.fault_cluster import FaultCluster
from faults.harness.watched_threads import WatchedThread

_MEAN_PAUSE_SECONDS = 0.6
"""Between two kills."""
_MEAN_STOP_PAUSE_SECONDS = 30.0
"""Between the end of a stop of a process and the next one."""
_STOP_SECONDS = (5.0, 40.0)
"""How long a process is stopped: shorter and longer than a lease and than keepalive."""
_START_SHARE = 0.1
"""Share of the chances to kill a control plane before it serves that are taken."""
_KILLS_PER_STOP = 5
"""Kills for each stop that is allowed: a slow machine is not stopped more often than a fast one."""
_KILLS_PER_STOP_ELSEWHERE = 25
"""The same where runs are not processes of the home: all stops hit the control plane then."""
_TICK_SECONDS = 0.1
_JOIN_SECONDS = 400.0
"""How long a thread may take to stop: it may be starting a control plane or a database."""
_LAST_START_SECONDS = 600.0
"""How long it may take to start the control plane for good, after the last kill."""
_WEIGHTS = {
    Role.TRIAL: 5.0,
    Role.SUPERVISOR: 4.0,
    Role.CONTROL_PLANE: 1.0,
    Role.ORPHAN_UPLOAD: 1.0,
    Role.POSTGRES: 0.5,
    Role.OBJECT_STORE: 0.7,
    Role.ENGINE_DAEMON: 1.5,
    Role.NODE: 0.8,
}
_STOPPED = (Role.TRIAL, Role.SUPERVISOR, Role.CONTROL_PLANE, Role.ORPHAN_UPLOAD)


@dataclass
class Damage:
    """What was done to a cluster."""

    kills: Counter[Role] = field(default_factory=Counter)
    stops: Counter[Role] = field(default_factory=Counter)
    stopped_seconds: float = 0.0


class ProcessKiller:
    """Kills in one thread, stops processes for a while in another, and keeps the control plane up in a third.

    Args:
        cluster: The cluster; it is up.
        dice: Decides whom and when.
        damage: Counts who was hit.
    """

    def __init__(self, cluster: FaultCluster, *, dice: random.Random, damage: Damage) -> None:
        self._cluster = cluster
        self._dice = dice
        self._stop_dice = random.Random(dice.random())
        self._damage = damage
        here = isinstance(cluster.engine, LocalEngine)
        self._kills_per_stop = _KILLS_PER_STOP if here else _KILLS_PER_STOP_ELSEWHERE
        self._stop = threading.Event()
        self._threads = [
            WatchedThread(name, work)
            for name, work in (
                ("killer", self._kill),
                ("stopper", self._interrupt),
                ("starter", self._keep_up),
            )
        ]
        self.budget = 0
        """Kills that are allowed so far; kills and stops go with the search's progress."""

    def start(self) -> None:
        """Begins."""
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Makes sure that every thread still does its work.

        Raises:
            AssertionError: One has failed.
        """
        for thread in self._threads:
            thread.check()

    def stop(self) -> None:
        """Ends, and sees to it that the cluster is up.

        Raises:
            AssertionError: A thread has failed or does not stop, or the control plane does not start.
        """
        self._stop.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        deadline = time.monotonic() + _LAST_START_SECONDS
        while not self._serves():
            self._up()
            assert time.monotonic() < deadline, "no control plane could be started after the last kill"

    def _kill(self) -> None:
        while not self._stop.wait(self._dice.expovariate(1 / _MEAN_PAUSE_SECONDS)):
            if self._damage.kills.total() < self.budget:
                self._kill_one()

    def _kill_one(self) -> None:
        victims: dict[Role, list[Callable[[], bool]]] = {}
        for victim in processes_of(self._cluster.home):
            starting = victim.role is Role.CONTROL_PLANE and not self._cluster.serves(victim.identity.pid)
            if starting and self._dice.random() > _START_SHARE:
                continue
            victims.setdefault(victim.role, []).append(partial(victim.identity.send, signal.SIGKILL))
        for role, kills in self._cluster.engine.victims(self._cluster.home).items():
            victims.setdefault(role, []).extend(kills)
        if self._cluster.postgres is not None:
            victims[Role.POSTGRES] = [self._restart_postgres]
        if self._cluster.store is not None:
            victims[Role.OBJECT_STORE] = [self._restart_store]
        roles = [role for role in _WEIGHTS if role in victims]
        if not roles:
            return
        role = self._dice.choices(roles, [_WEIGHTS[role] for role in roles])[0]
        # A role of the engine whose turn it is may have nobody now: others are not hit more often for that.
        if victims[role] and self._dice.choice(victims[role])():
            self._damage.kills[role] += 1

    def _restart_postgres(self) -> bool:
        assert self._cluster.postgres is not None
        self._cluster.postgres.kill()
        self._cluster.postgres.start()
        return True

    def _restart_store(self) -> bool:
        assert self._cluster.store is not None
        self._cluster.store.stop()
        self._cluster.store.start()
        return True

    def _interrupt(self) -> None:
        while not self._stop.wait(self._stop_dice.expovariate(1 / _MEAN_STOP_PAUSE_SECONDS)):
            living = [one for one in processes_of(self._cluster.home) if one.role in _STOPPED]
            # By role first: there are many more trials than control planes.
            roles = sorted({one.role for one in living}, key=lambda role: role.value)
            if roles and self._damage.stops.total() <= self.budget // self._kills_per_stop:
                role = self._stop_dice.choice(roles)
                self._interrupt_one(self._stop_dice.choice([one for one in living if one.role is role]))

    def _interrupt_one(self, victim: ClusterProcess) -> None:
        seconds = self._stop_dice.uniform(*_STOP_SECONDS)
        if not victim.identity.send(signal.SIGSTOP):
            return
        self._damage.stops[victim.role] += 1
        self._damage.stopped_seconds += seconds
        try:
            self._stop.wait(seconds)
        finally:
            victim.identity.send(signal.SIGCONT)

    def _keep_up(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            if not self._serves():
                self._up()

    def _serves(self) -> bool:
        return any(victim.role is Role.CONTROL_PLANE for victim in processes_of(self._cluster.home))

    def _up(self) -> None:
        try:
            self._cluster.up()
        except (AssertionError, subprocess.TimeoutExpired):
            # It may well be killed or stopped while it starts; anyone who looks next sees that nobody serves.
            return

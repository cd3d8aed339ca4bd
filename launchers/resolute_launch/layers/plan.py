"""A launch as plain data: the command, its environment, and the way to stop it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from resolute.contracts.run.launch_order import TERM_GRACE_SECONDS
from resolute_launch.layers.arguments import Request
from resolute_launch.layers.topology import Topology
from resolute_launch.processes.grace_period import layer_grace_period

WRAP_RANK = "resolute_launch.wrap_rank"
_RESTARTING = {"--host_discovery_script", "--elastic_training"}


class LaunchRefusedError(Exception):
    """A launch that is impossible here. The message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """One launch in one container. Two plans of the same request and topology are equal."""

    argv: tuple[str, ...]
    """Program and arguments."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that are set."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables that are set unless they are set already."""
    dropped: frozenset[str] = frozenset()
    """Variables that are removed, because they would mislead the launcher."""
    files: Mapping[Path, str] = field(default_factory=dict)
    """Files that it reads."""
    external_resources: tuple[Path, ...] = ()
    """Files that its workers may leave behind; they are deleted at the end."""
    grace_seconds: float = layer_grace_period(TERM_GRACE_SECONDS)
    """Seconds between SIGTERM and SIGKILL; less than the supervisor of a run gives to all of it."""
    signals_process_group: bool = False
    """Whether signals go to all of its process group, because the launcher itself does not pass them on."""
    restarts_ranks: bool = False
    """Whether the launcher may start failed ranks again by itself."""
    environment_by_file: bool = False
    """Whether workers get their environment by a file, as the launcher would show it in command lines."""
    replaces_process: bool = False
    """Whether it replaces this process (exec): there are no workers to supervise."""

    def environ(self, base: Mapping[str, str]) -> dict[str, str]:
        """Returns the whole environment.

        Args:
            base: What the layer itself was started with.
        """
        kept = {name: value for name, value in base.items() if name not in self.dropped}
        return {**self.defaults, **kept, **self.environment}


def direct(request: Request) -> LaunchPlan:
    """The plan of a script that needs no launcher."""
    return LaunchPlan(argv=request.script, replaces_process=True)


def restarts_ranks(request: Request) -> bool:
    """Whether the overrides ask the launcher to start failed ranks again."""
    asked = {_spelled(word.partition("=")[0]) for word in request.overrides}
    return not asked.isdisjoint(_RESTARTING) or last_value(request, "--max_restarts") not in ("", "0")


def last_value(request: Request, option: str) -> str:
    """The value of an override that may be given as one word or two; of several the last.

    Args:
        request: What is to be launched.
        option: The option, spelled with ``_``.

    Returns:
        The value, empty if the option was not given.
    """
    words = [part for word in request.overrides for part in word.split("=", 1)]
    values = [value for name, value in pairwise(words) if _spelled(name) == option]
    return values[-1] if values else ""


def _spelled(option: str) -> str:
    return "--" + option[2:].replace("-", "_") if option.startswith("--") else option


def thread_defaults(topology: Topology) -> dict[str, str]:
    """Keeps the workers of a machine from taking all of its cores each.

    torchrun decides the same, with a warning; other launchers leave it open.
    """
    return {"OMP_NUM_THREADS": "1"} if topology.workers_here > 1 else {}


def network_defaults(topology: Topology) -> dict[str, str]:
    """Tells ranks which network interface reaches the other containers.

    Gloo looks for it by the name of the machine, which on many machines is that of the loopback.
    """
    names = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME") if topology.interface else ()
    return dict.fromkeys(names, topology.interface)

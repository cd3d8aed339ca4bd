"""Starts one worker in every container of the run; ``TF_CONFIG`` lists all workers.

TensorFlow has no launcher of its own: in each worker, a strategy for several workers reads this variable. The
one worker of a container has all of its devices.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from resolute_launch.layers.arguments import UsageError, command_of, raise_for_help
from resolute_launch.layers.command import run_layer
from resolute_launch.layers.plan import WRAP_RANK, LaunchPlan, network_defaults
from resolute_launch.layers.topology import Topology
from resolute_launch.processes.grace_period import layer_grace_period

_PORT = "--port"
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFlowRequest:
    """A parsed command line: what to launch."""

    script: tuple[str, ...]
    """Program and arguments of each worker."""
    port: int | None = None
    """Port that every worker listens on; None for the ports that the run reserved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFlowArgumentParser:
    """The grammar of the layer's command line: ``[--port PORT] [--] SCRIPT...``."""

    name: str = "determined.launch.tensorflow"
    """Its name, as in an entrypoint."""

    @property
    def usage(self) -> str:
        """The usage line."""
        return f"usage: {self.name} [--port PORT] [--] SCRIPT..."

    @property
    def help(self) -> str:
        """What ``--help`` prints."""
        return (
            f"{self.usage}\n\nLaunches a script once in each container; TF_CONFIG names the others.\n\n"
            "  --port PORT  where every worker listens; by default at ports that the run has set aside\n"
            "  SCRIPT...  what each worker runs, with its arguments"
        )

    def parse(self, words: Sequence[str], *, python: str = sys.executable) -> TensorFlowRequest:
        """Reads the command line.

        Args:
            words: The arguments of the layer.
            python: Interpreter for scripts that are named by their file alone.

        Raises:
            UsageError: There is nothing to run or the port is none, or help was asked for.
        """
        raise_for_help(words)
        port, rest = _port_of(tuple(words))
        script = rest[1:] if rest[:1] == ("--",) else rest
        command = command_of(script, python=python, remedy="the layer takes --port PORT alone, and a SCRIPT")
        return TensorFlowRequest(script=command, port=port)


PARSER = TensorFlowArgumentParser()


def plan(request: TensorFlowRequest, topology: Topology) -> LaunchPlan:
    """Plans the part of this container."""
    environment = {"DET_CHIEF_IP": topology.chief}
    if topology.single_container:
        return LaunchPlan(argv=request.script, environment=environment, replaces_process=True)
    ports = _ports(request, topology)
    cluster = {"worker": [_endpoint(*place) for place in zip(topology.addresses, ports, strict=True)]}
    task = {"type": "worker", "index": topology.node_rank}
    return LaunchPlan(
        argv=(topology.python, "-m", WRAP_RANK, str(topology.node_rank), "--", *request.script),
        environment={**environment, "TF_CONFIG": json.dumps({"cluster": cluster, "task": task})},
        defaults=network_defaults(topology),
        grace_seconds=layer_grace_period(topology.grace_seconds),
    )


def _ports(request: TensorFlowRequest, topology: Topology) -> Sequence[int]:
    if request.port is None and topology.container_ports:
        return topology.container_ports
    return [request.port or topology.port] * topology.nodes


def _endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _port_of(words: tuple[str, ...]) -> tuple[int | None, tuple[str, ...]]:
    if not words:
        return None, words
    name, equals, value = words[0].partition("=")
    if name != _PORT:
        return None, words
    rest = words[1:]
    if not equals:
        if not rest:
            raise UsageError(f"error: argument {_PORT}: expected one argument", exit_code=2)
        value, rest = rest[0], rest[1:]
    if not value.isdecimal() or not 0 < int(value) <= _LAST_PORT:
        raise UsageError(f"error: argument {_PORT}: invalid port: {value!r}", exit_code=2)
    return int(value), rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    return run_layer(PARSER, plan, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""Horovod, which is imported once a script has named its framework.

``hvd`` is a proxy for Horovod's module of that framework::

    from determined.horovod import hvd

    hvd.require_horovod_type("torch", "the script trains with PyTorch")
    hvd.init()
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from determined.constants import (
    DTRAIN_SSH_PORT,
    HOROVOD_AUTOTUNE_LOG_FILEPATH,
    HOROVOD_GLOO_TIMEOUT_SECONDS,
    HOROVOD_STARTUP_TIMEOUT_SECONDS,
)

__all__ = ["create_hostlist_arg", "create_performance_args", "create_run_command", "hvd"]

_TYPES = ("torch", "tensorflow", "tensorflow.keras")


class _Horovod:
    """A proxy for Horovod's module of the chosen framework."""

    def __init__(self) -> None:
        self._type = ""
        self._reason = ""

    def require_horovod_type(self, horovod_type: str, reason: str) -> None:
        """Says for which framework Horovod is used.

        Args:
            horovod_type: ``torch``, ``tensorflow`` or ``tensorflow.keras``.
            reason: Why, for the message if somebody else wants another one.

        Raises:
            ValueError: There is no such type, or another one was required before.
        """
        if horovod_type not in _TYPES:
            raise ValueError(f"horovod_type is {horovod_type!r}; one of {', '.join(_TYPES)} was expected")
        if self._type not in {"", horovod_type}:
            raise ValueError(
                f"horovod.{horovod_type} is required because {reason}, but horovod.{self._type} was required "
                f"before because {self._reason}; a process can use one of them only"
            )
        self._type, self._reason = horovod_type, self._reason or reason

    def cross_rank(self) -> int:
        """Returns the index of this machine."""
        return self._across("cross_rank")

    def cross_size(self) -> int:
        """Returns the number of machines."""
        return self._across("cross_size")

    def _across(self, name: str) -> int:
        function = getattr(self._module(), name, None)
        if callable(function):
            return int(function())
        variable = f"HOROVOD_{name.upper()}"
        if variable not in os.environ:
            raise RuntimeError(f"Horovod does not know its {name}, and {variable} is not set")
        return int(os.environ[variable])

    def _module(self) -> Any:
        if not self._type:
            raise RuntimeError(
                "you must call det.horovod.hvd.require_horovod_type() before Horovod is used, to say for "
                "which framework"
            )
        try:
            return importlib.import_module(f"horovod.{self._type}")
        except ImportError as failure:
            raise ImportError(
                f"Horovod could not be imported for {self._type} (needed because {self._reason}): {failure}"
            ) from failure

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._module(), name)


hvd: Any = _Horovod()
"""Horovod's module of the framework that was required."""


def create_hostlist_arg(num_proc_per_machine: Sequence[int], ip_addresses: Sequence[str]) -> str:
    """Returns the hosts of ``horovodrun -H``; the first is this machine.

    Args:
        num_proc_per_machine: Processes on each machine.
        ip_addresses: Addresses of the machines.
    """
    hosts = ["localhost", *ip_addresses[1:]]
    return ",".join(f"{host}:{count}" for host, count in zip(hosts, num_proc_per_machine, strict=True))


def create_performance_args(optimizations: Mapping[str, Any]) -> list[str]:
    """Returns the options of ``horovodrun`` for ``optimizations`` of a config."""
    if optimizations.get("auto_tune_tensor_fusion"):
        tuning = ["--autotune", "--autotune-log-file", HOROVOD_AUTOTUNE_LOG_FILEPATH]
    else:
        tuning = [
            *("--fusion-threshold-mb", str(optimizations.get("tensor_fusion_threshold", 64))),
            *("--cycle-time-ms", str(optimizations.get("tensor_fusion_cycle_time", 1))),
        ]
    fixed = ["--cache-capacity", "1024", "--no-hierarchical-allreduce", "--no-hierarchical-allgather"]
    return [*tuning, *fixed]


def create_run_command(
    num_proc_per_machine: Sequence[int],
    ip_addresses: Sequence[str],
    inter_node_network_interface: str | None,
    optimizations: Mapping[str, Any],
    debug: bool,
    optional_args: Sequence[str],
) -> list[str]:
    """Returns the ``horovodrun`` that starts a program, which is to be appended.

    Args:
        num_proc_per_machine: Processes on each machine.
        ip_addresses: Addresses of the machines, this one first.
        inter_node_network_interface: Interface between the machines; None to let Horovod choose.
        optimizations: That section of the config.
        debug: Whether it says more.
        optional_args: More options.
    """
    interface = inter_node_network_interface if len(ip_addresses) > 1 else None
    return [
        *("horovodrun", "-np", str(sum(num_proc_per_machine)), "-p", str(DTRAIN_SSH_PORT)),
        *("-H", create_hostlist_arg(num_proc_per_machine, ip_addresses)),
        *("--start-timeout", str(HOROVOD_STARTUP_TIMEOUT_SECONDS)),
        *("--gloo-timeout-seconds", str(HOROVOD_GLOO_TIMEOUT_SECONDS)),
        *(["--network-interface", interface] if interface else []),
        *create_performance_args(optimizations),
        *(["--verbose"] if debug else []),
        *optional_args,
        "--",
    ]

"""The load and the temperature of nodes, from the latest reports of their runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from resolute.client.schema.machines import MachineUsage


@dataclass(frozen=True)
class NodeHeat:
    """The load of one node on which trials run."""

    node: str
    trials: tuple[int, ...]
    cpu: float | None
    """Percent of its processors, now."""
    memory: float | None
    """Percent of its memory, or of what the fullest container may use."""
    gpu: float | None
    """Percent for which the GPUs of these trials work, on the average."""
    celsius: float | None
    """Of the warmest of them."""


def heat(reported: Iterable[tuple[int, MachineUsage]]) -> list[NodeHeat]:
    """Puts together by node what the machines of trials reported.

    Args:
        reported: Trials, each with what the machine of one of its containers did.
    """
    by_node: dict[str, list[tuple[int, MachineUsage]]] = {}
    for trial, usage in reported:
        by_node.setdefault(usage.node, []).append((trial, usage))
    return [_of_node(node, by_node[node]) for node in sorted(by_node)]


def _of_node(node: str, reported: Sequence[tuple[int, MachineUsage]]) -> NodeHeat:
    usages = [usage for _, usage in reported]
    # Two trials may share a GPU.
    gpus = {name: value for usage in usages for name, value in _now(usage, ".gpu_util")}
    return NodeHeat(
        node=node,
        trials=tuple(sorted({trial for trial, _ in reported})),
        cpu=max((value for usage in usages for _, value in _now(usage, "cpu")), default=None),
        memory=max((value for usage in usages for _, value in _now(usage, "memory")), default=None),
        gpu=sum(gpus.values()) / len(gpus) if gpus else None,
        celsius=max(
            (value for usage in usages for _, value in _now(usage, ".gpu_temperature")), default=None
        ),
    )


def _now(usage: MachineUsage, quantity: str) -> list[tuple[str, float]]:
    """The newest values of a quantity by name: of GPUs where it begins with a dot, else of the machine."""
    of_gpus = quantity.startswith(".")
    wanted = [name for name in usage.series if name == quantity or (of_gpus and name.endswith(quantity))]
    found = [(name, usage.mean(name, seconds=0.0)) for name in wanted]
    return [(name, value) for name, value in found if value is not None]

"""``resolute agent|slot enable|disable``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from resolute.cli.cluster.machines import SLOT_COLUMNS
from resolute.cli.display.output import Format, format_option, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import ClusterRecord, PoolRecord, SlotRecord


@dataclass(frozen=True)
class _Machine:
    """A machine as the command line names it."""

    pool: str
    """Empty where it does not say."""
    number: int


if TYPE_CHECKING:
    _MachineParam = click.ParamType[_Machine]
else:  # generic only in newer releases of click
    _MachineParam = click.ParamType


class _MachineType(_MachineParam):
    """A number, or a name as `det agent list` prints it: ``POOL/NUMBER``."""

    name = "machine"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _Machine:
        """Parses the text."""
        pool, _, number = str(value).rpartition("/")
        if not number.isdecimal():
            self.fail(
                f"{value!r} is not a machine such as 0 or default/0; `resolute agent list` shows them.",
                param,
                ctx,
            )
        return _Machine(pool, int(number))


_MACHINE = click.argument("machine", type=_MachineType(), required=False)
_ITS_MACHINE = click.argument("machine", type=_MachineType())
_ALL = click.option(
    "--all", "all_machines", is_flag=True, help="All machines, of every pool if none is named."
)
_DRAIN = click.option(
    "--drain", is_flag=True, help="Trials that hold the slots go on to their end, or until they are paused."
)
_POOL = click.option(
    "--resource-pool", "pool", default="", metavar="NAME", help="Pool of the machine instead of the default."
)


@click.command(name="disable")
@_MACHINE
@_ALL
@_POOL
@_DRAIN
@format_option
@click.pass_obj
def disable_machine(
    settings: Settings, machine: _Machine | None, all_machines: bool, pool: str, drain: bool, output: Format
) -> None:
    """Start no more runs on the slots of a MACHINE; trials that hold them checkpoint and go on elsewhere.

    It stays so, also after a restart of the cluster, until `resolute agent enable`. `resolute agent list`
    shows the numbers of machines in their pools.
    """
    chosen = _of_machines(machine, all_machines=all_machines, pool=pool)
    _disable(settings, chosen, drain=drain, output=output)


@click.command(name="enable")
@_MACHINE
@_ALL
@_POOL
@click.pass_obj
def enable_machine(settings: Settings, machine: _Machine | None, all_machines: bool, pool: str) -> None:
    """Start runs on the slots of a MACHINE again."""
    _enable(settings, _of_machines(machine, all_machines=all_machines, pool=pool))


@click.command(name="disable")
@_ITS_MACHINE
@click.argument("slot", type=click.IntRange(0))
@_POOL
@_DRAIN
@format_option
@click.pass_obj
def disable_slot(
    settings: Settings, machine: _Machine, slot: int, pool: str, drain: bool, output: Format
) -> None:
    """Start no more runs on a SLOT of a MACHINE; a trial that holds it checkpoints and goes on elsewhere."""
    _disable(settings, _one(machine, slot, pool=pool), drain=drain, output=output)


@click.command(name="enable")
@_ITS_MACHINE
@click.argument("slot", type=click.IntRange(0))
@_POOL
@click.pass_obj
def enable_slot(settings: Settings, machine: _Machine, slot: int, pool: str) -> None:
    """Start runs on a SLOT of a MACHINE again."""
    _enable(settings, _one(machine, slot, pool=pool))


_Chosen = Mapping[str, list[int]]
"""Numbers of slots by the name of their pool."""
_Choice = Callable[[ClusterRecord], _Chosen]
"""Chooses slots of the cluster."""


def _of_machines(machine: _Machine | None, *, all_machines: bool, pool: str) -> _Choice:
    if (machine is None) != all_machines:
        raise click.UsageError("Name a machine, or all of them with --all.")

    def choose(cluster: ClusterRecord) -> _Chosen:
        if all_machines and not pool:
            return _everywhere(cluster)
        target = _pool(cluster, _one_pool(machine, pool))
        # A pool that cannot be changed here is refused by the server, which knows the remedy.
        there = [slot for slot in _slots(cluster, target) if machine is None or slot.node == machine.number]
        if not there and not target.placed_by_engine:
            raise click.UsageError(
                f"There is no machine {machine.number if machine else ''} in pool {target.name!r}; "
                "`resolute agent list` shows them."
            )
        return {target.name: _numbers(there)}

    return choose


def _one(machine: _Machine, number: int, *, pool: str) -> _Choice:
    def choose(cluster: ClusterRecord) -> _Chosen:
        target = _pool(cluster, _one_pool(machine, pool))
        place = (machine.number, number)
        there = [slot for slot in _slots(cluster, target) if (slot.node, slot.slot_id) == place]
        if not there and not target.placed_by_engine:
            raise click.UsageError(
                f"Machine {machine.number} of pool {target.name!r} has no slot {number}; "
                "`resolute slot list` shows them."
            )
        return {target.name: _numbers(there)}

    return choose


def _one_pool(machine: _Machine | None, pool: str) -> str:
    """The pool that the machine's name or the option says; empty for neither."""
    if machine is None or not machine.pool:
        return pool
    if pool and pool != machine.pool:
        raise click.UsageError(f"Machine {machine.pool}/{machine.number} is not in pool {pool!r}.")
    return machine.pool


def _everywhere(cluster: ClusterRecord) -> _Chosen:
    """All slots that are given out here; where there are none, the server says what else can be done."""
    ours = [pool for pool in cluster.resource_pools if not pool.placed_by_engine]
    for pool in cluster.resource_pools:
        if ours and pool.placed_by_engine:
            click.echo(f"left out: pool {pool.name}, whose engine assigns its slots itself", err=True)
    return {pool.name: _numbers(_slots(cluster, pool)) for pool in ours or cluster.resource_pools}


def _pool(cluster: ClusterRecord, name: str) -> PoolRecord:
    """The pool of a name; the first is the default one."""
    for pool in cluster.resource_pools:
        if name in {"", pool.name}:
            return pool
    others = ", ".join(repr(pool.name) for pool in cluster.resource_pools)
    raise click.UsageError(f"There is no resource pool {name!r}; there are: {others}.")


def _slots(cluster: ClusterRecord, pool: PoolRecord) -> list[SlotRecord]:
    return [slot for slot in cluster.slots if slot.resource_pool == pool.name]


def _numbers(slots: Sequence[SlotRecord]) -> list[int]:
    return [slot.slot_id for slot in slots]


def _disable(settings: Settings, choose: _Choice, *, drain: bool, output: Format) -> None:
    cluster = settings.services().cluster
    chosen = choose(cluster.get())
    for pool, numbers in chosen.items():
        cluster.disable_slots(numbers, resource_pool=pool, drain=drain)
    now = [slot for slot in cluster.get().slots if slot.slot_id in chosen.get(slot.resource_pool, ())]
    print_items(now, SLOT_COLUMNS, output=output)


def _enable(settings: Settings, choose: _Choice) -> None:
    cluster = settings.services().cluster
    for pool, numbers in choose(cluster.get()).items():
        cluster.enable_slots(numbers, resource_pool=pool)
        click.echo(f"enabled: slot {', '.join(map(str, numbers))} of pool {pool}")

"""``resolute agent list``, ``slot list``, ``resource-pool list|describe`` and ``master info``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter

import click

from resolute.cli.display.output import (
    Column,
    Format,
    format_option,
    print_document,
    print_fields,
    print_items,
    yaml_option,
)
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import ClusterRecord, SlotRecord


@dataclass(frozen=True)
class Machine:
    """A machine of the cluster."""

    resource_pool: str
    id: int
    kinds: tuple[str, ...]
    slots: int
    slots_in_use: int
    slots_disabled: int
    draining: bool
    """Whether trials that hold disabled slots go on to their end."""
    runs: int
    """How many hold its slots."""

    @property
    def name(self) -> str:
        """What names it in the whole cluster."""
        return f"{self.resource_pool}/{self.id}"


@dataclass(frozen=True)
class Pool:
    """A resource pool. Its numbers are None where only its engine knows them."""

    name: str
    machines: int | None
    slots: int | None
    slots_in_use: int | None
    slots_disabled: int | None
    queued_trials: int | None
    """None where there are several pools: the queue is one for all."""


_MACHINE_COLUMNS: tuple[Column[Machine], ...] = (
    Column("Pool", lambda one: one.resource_pool),
    Column("Machine", lambda one: one.id, right=True),
    Column("Kind", lambda one: one.kinds),
    Column("Slots", lambda one: one.slots, right=True),
    Column("In use", lambda one: one.slots_in_use, right=True),
    Column("Disabled", lambda one: one.slots_disabled, right=True),
    Column("Draining", lambda one: one.draining),
)
SLOT_COLUMNS: tuple[Column[SlotRecord], ...] = (
    Column("Pool", lambda slot: slot.resource_pool),
    Column("Machine", lambda slot: slot.node, right=True),
    Column("Slot", lambda slot: slot.slot_id, right=True),
    Column("Kind", lambda slot: slot.kind),
    Column("In use", lambda slot: bool(slot.allocation_id)),
    Column("Trial", lambda slot: slot.trial_id or None, right=True),
    Column("Enabled", lambda slot: not slot.disabled),
    Column("Draining", lambda slot: slot.draining),
)
"""Of a table of slots."""
_POOL_COLUMNS: tuple[Column[Pool], ...] = (
    Column("Name", lambda pool: pool.name),
    Column("Machines", lambda pool: pool.machines, right=True),
    Column("Slots", lambda pool: pool.slots, right=True),
    Column("In use", lambda pool: pool.slots_in_use, right=True),
    Column("Disabled", lambda pool: pool.slots_disabled, right=True),
    Column("Queued trials", lambda pool: pool.queued_trials, right=True),
)


@click.command(name="list")
@format_option
@click.pass_obj
def list_machines(settings: Settings, output: Format) -> None:
    """List the machines of the cluster with their slots."""
    print_items(_machines(settings.services().cluster.get().slots), _MACHINE_COLUMNS, output=output)


@click.command(name="list")
@format_option
@click.pass_obj
def list_slots(settings: Settings, output: Format) -> None:
    """List the slots of the cluster with the trials that hold them."""
    print_items(settings.services().cluster.get().slots, SLOT_COLUMNS, output=output)


@click.command(name="list")
@format_option
@click.pass_obj
def list_pools(settings: Settings, output: Format) -> None:
    """List the resource pools, with what is known of their slots."""
    print_items(_pools(settings.services().cluster.get()), _POOL_COLUMNS, output=output)


@click.command(name="describe")
@click.argument("name", default="default")
@format_option
@click.pass_obj
def describe_pool(settings: Settings, name: str, output: Format) -> None:
    """Show the resource pool NAME."""
    pools = _pools(settings.services().cluster.get())
    named = [pool for pool in pools if pool.name == name]
    if not named:
        others = ", ".join(repr(pool.name) for pool in pools)
        raise click.UsageError(f"There is no resource pool {name!r}; there are: {others}.")
    print_items(named, _POOL_COLUMNS, output=output)


@click.command()
@format_option
@yaml_option
@click.pass_obj
def info(settings: Settings, output: Format) -> None:
    """Show version, address and identity of the cluster."""
    cluster = settings.services().cluster.get()
    endpoint = settings.endpoint()
    facts = {
        "version": cluster.version,
        "address": endpoint.address if endpoint else "",
        "cluster_id": cluster.cluster_id,
        "slots": len(cluster.slots),
        "disabled_slots": sum(slot.disabled for slot in cluster.slots),
        "queued_trials": cluster.queued_trials,
        "problems": list(cluster.problems),
    }
    if output in {Format.JSON, Format.YAML}:
        print_document(facts, output=output)
    elif output is Format.CSV:
        columns = [Column[dict[str, object]](name, itemgetter(name)) for name in facts]
        print_items([dict(facts)], columns, output=output)
    else:
        print_fields((name.replace("_", " ").capitalize(), value) for name, value in facts.items())


def _machines(slots: Sequence[SlotRecord]) -> list[Machine]:
    machine = attrgetter("resource_pool", "node")
    ordered = groupby(sorted(slots, key=machine), key=machine)
    return [_machine(pool, number, list(held)) for (pool, number), held in ordered]


def _machine(pool: str, number: int, slots: Sequence[SlotRecord]) -> Machine:
    kinds = tuple(sorted({slot.kind for slot in slots}))
    return Machine(
        pool,
        number,
        kinds,
        len(slots),
        sum(bool(slot.allocation_id) for slot in slots),
        sum(slot.disabled for slot in slots),
        any(slot.draining for slot in slots),
        len({slot.allocation_id for slot in slots if slot.allocation_id}),
    )


def _pools(cluster: ClusterRecord) -> list[Pool]:
    ordered = groupby(_machines(cluster.slots), key=attrgetter("resource_pool"))
    machines = {name: list(held) for name, held in ordered}
    # A service of an earlier version tells of slots alone.
    names = list(dict.fromkeys([*(pool.name for pool in cluster.resource_pools), *machines]))
    queued = cluster.queued_trials if len(names) == 1 else None
    return [_pool(name, machines.get(name, ()), queued) for name in names]


def _pool(name: str, machines: Sequence[Machine], queued: int | None) -> Pool:
    if not machines:
        return Pool(name, None, None, None, None, queued)
    return Pool(
        name,
        len(machines),
        sum(machine.slots for machine in machines),
        sum(machine.slots_in_use for machine in machines),
        sum(machine.slots_disabled for machine in machines),
        queued,
    )

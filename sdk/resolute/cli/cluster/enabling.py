"""``resolute agent|slot enable|disable``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from resolute.cli.cluster.machines import SLOT_COLUMNS
from resolute.cli.display.output import Format, format_option, print_items
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import SlotRecord

_MACHINE = click.argument("machine", type=click.IntRange(0), required=False)
_ALL = click.option("--all", "all_machines", is_flag=True, help="All machines.")
_DRAIN = click.option(
    "--drain", is_flag=True, help="Trials that hold the slots go on to their end, or until they are paused."
)


@click.command(name="disable")
@_MACHINE
@_ALL
@_DRAIN
@format_option
@click.pass_obj
def disable_machine(
    settings: Settings, machine: int | None, all_machines: bool, drain: bool, output: Format
) -> None:
    """Start no more runs on the slots of a MACHINE; trials that hold them checkpoint and go on elsewhere.

    It stays so, also after a restart of the cluster, until `resolute agent enable`. `resolute agent list`
    shows the numbers of machines.
    """
    chosen = _of_machines(machine, all_machines=all_machines)
    _disable(settings, chosen, drain=drain, output=output)


@click.command(name="enable")
@_MACHINE
@_ALL
@click.pass_obj
def enable_machine(settings: Settings, machine: int | None, all_machines: bool) -> None:
    """Start runs on the slots of a MACHINE again."""
    _enable(settings, _of_machines(machine, all_machines=all_machines))


@click.command(name="disable")
@click.argument("machine", type=click.IntRange(0))
@click.argument("slot", type=click.IntRange(0))
@_DRAIN
@format_option
@click.pass_obj
def disable_slot(settings: Settings, machine: int, slot: int, drain: bool, output: Format) -> None:
    """Start no more runs on a SLOT of a MACHINE; a trial that holds it checkpoints and goes on elsewhere."""
    _disable(settings, _one(machine, slot), drain=drain, output=output)


@click.command(name="enable")
@click.argument("machine", type=click.IntRange(0))
@click.argument("slot", type=click.IntRange(0))
@click.pass_obj
def enable_slot(settings: Settings, machine: int, slot: int) -> None:
    """Start runs on a SLOT of a MACHINE again."""
    _enable(settings, _one(machine, slot))


_Choice = Callable[[Sequence[SlotRecord]], list[int]]
"""Chooses among the slots of the cluster."""


def _of_machines(machine: int | None, *, all_machines: bool) -> _Choice:
    if (machine is None) != all_machines:
        raise click.UsageError("Name a machine, or all of them with --all.")

    def choose(slots: Sequence[SlotRecord]) -> list[int]:
        chosen = [slot.slot_id for slot in slots if all_machines or slot.node == machine]
        if not chosen:
            raise click.UsageError(f"There is no machine {machine}; `resolute agent list` shows them.")
        return chosen

    return choose


def _one(machine: int, number: int) -> _Choice:
    def choose(slots: Sequence[SlotRecord]) -> list[int]:
        if not any(slot.slot_id == number and slot.node == machine for slot in slots):
            raise click.UsageError(
                f"Machine {machine} has no slot {number}; `resolute slot list` shows them."
            )
        return [number]

    return choose


def _disable(settings: Settings, choose: _Choice, *, drain: bool, output: Format) -> None:
    cluster = settings.services().cluster
    chosen = choose(cluster.get().slots)
    cluster.disable_slots(chosen, drain=drain)
    now = [slot for slot in cluster.get().slots if slot.slot_id in chosen]
    print_items(now, SLOT_COLUMNS, output=output)


def _enable(settings: Settings, choose: _Choice) -> None:
    cluster = settings.services().cluster
    chosen = choose(cluster.get().slots)
    cluster.enable_slots(chosen)
    click.echo(f"enabled: slot {', '.join(map(str, chosen))}")

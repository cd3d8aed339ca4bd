"""``resolute trial machine``."""

from __future__ import annotations

from dataclasses import dataclass

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.schema.machines import MachineUsage
from resolute.contracts.sizes import human_size

_HOUR = 3600.0
_RATES = frozenset(
    {
        "disk_read",
        "disk_write",
        "net_received",
        "net_sent",
        "gpu_pcie_received",
        "gpu_pcie_sent",
        "gpu_nvlink_received",
        "gpu_nvlink_sent",
    }
)
_BYTES = frozenset({"gpu_free_memory", "gpu_process_memory"})
_UNITS = {
    "cpu": "%",
    "memory": "%",
    "gpu_util": "%",
    "gpu_used_memory": "%",
    "gpu_process_util": "%",
    "gpu_power": " W",
    "gpu_temperature": " °C",
}


@dataclass(frozen=True)
class _Row:
    usage: MachineUsage
    name: str

    def mean(self, seconds: float) -> str:
        value = self.usage.mean(self.name, seconds=seconds)
        if value is None:
            return ""
        quantity = self.name.rpartition(".")[2]
        if quantity in _RATES:
            return f"{human_size(round(value))}/s"
        if quantity in _BYTES:
            return human_size(round(value))
        return f"{value:.1f}{_UNITS.get(quantity, '')}"


@click.command()
@click.argument("trial_id", type=TRIAL)
@click.option("--run", default=0, metavar="N", help="The run [the newest].")
@format_option
@click.pass_obj
def machine(settings: Settings, trial_id: str, run: int, output: Format) -> None:
    """Show what the machines of a trial do: processors, memory, disks, network and GPUs."""
    usages = settings.services().trials.machine_usage(trial_id, run=run)
    if output in {Format.JSON, Format.YAML}:
        print_items(usages, (), output=output)
        return
    rows = [_Row(usage, name) for usage in usages for name in usage.series]
    print_items(rows, _COLUMNS, output=output)


_COLUMNS: tuple[Column[_Row], ...] = (
    Column("Container", lambda row: row.usage.container_rank, right=True),
    Column("Node", lambda row: row.usage.node),
    Column("Quantity", lambda row: row.name),
    Column("Now", lambda row: row.mean(0.0), right=True),
    Column("Last hour", lambda row: row.mean(_HOUR), right=True),
    Column("Whole run", lambda row: row.mean(float("inf")), right=True),
)

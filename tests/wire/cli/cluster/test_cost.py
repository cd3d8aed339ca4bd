"""What `resolute cost` adds up from the runs of trials."""

from __future__ import annotations

import csv
import io
import time
from typing import Any

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import cluster_service_pb2, run_pb2
from resolute.api.metrics.v1 import summary_pb2

START = 1_700_000_000


def allocated(
    number: int, *, slots: list[int], hours: float, usage: run_pb2.GpuUsage | None = None
) -> run_pb2.Run:
    run = run_pb2.Run(run=number, slot_ids=slots, gpu_usage=usage)
    run.start_time.FromSeconds(START)
    run.end_time.FromSeconds(START + round(hours * 3600))
    return run


@pytest.fixture
def costly(cluster: ScriptedCluster) -> ScriptedCluster:
    """Ada's experiment had two trials; that of grace had one on two GPUs, and has two labels."""
    state = cluster.state
    state.slots += [
        cluster_service_pb2.Slot(slot_id=slot, kind=kind)
        for slot, kind in enumerate(
            [cluster_service_pb2.SLOT_KIND_CPU, *[cluster_service_pb2.SLOT_KIND_GPU] * 2]
        )
    ]
    first = state.add_experiment(owner_name="ada")
    state.add_trial(first, runs=[allocated(n, slots=[0], hours=0.5) for n in (1, 2)])
    state.add_trial(first, runs=[allocated(1, slots=[0, 1], hours=1)])
    second = state.add_experiment(owner_name="grace", labels=["night", "vision"])
    measured = run_pb2.GpuUsage(energy_joules=7.2e6, busy_seconds=3 * 3600, measured_seconds=4 * 3600)
    state.add_trial(second, runs=[allocated(1, slots=[1, 2], hours=2, usage=measured)])
    return cluster


def rows(resolute: CommandLine, *arguments: str) -> list[dict[str, Any]]:
    outcome = resolute("cost", *arguments, "--csv")
    assert outcome.code == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out)))


@pytest.mark.usefixtures("costly")
def test_hours_are_added_up_by_what_is_asked(resolute: CommandLine) -> None:
    assert rows(resolute, "1")[0] == {
        "experiment": "1",
        "experiments": "1",
        "trials": "2",
        "runs": "3",
        "slot_hours": "3.0",
        "gpu_hours": "1.0",
        "gpu_busy_hours": "",
        "gpu_idle_hours": "",
        "energy_kwh": "",
    }
    assert [(one["trial"], one["slot_hours"]) for one in rows(resolute, "--by", "trial", "1")] == [
        ("1", "1.0"),
        ("2", "2.0"),
    ]
    by_user = {one["user"]: one["gpu_hours"] for one in rows(resolute, "--by", "user")}
    assert by_user == {"ada": "1.0", "grace": "4.0"}
    by_label = {one["label"]: one["slot_hours"] for one in rows(resolute, "--by", "label")}
    assert by_label == {"(no label)": "3.0", "night": "4.0", "vision": "4.0"}


@pytest.mark.usefixtures("costly")
def test_only_time_of_the_period_counts(resolute: CommandLine) -> None:
    assert rows(resolute, "--since", "2030-01-01") == []
    assert len(rows(resolute, "--until", "2030-01-01")) == 2


@pytest.mark.usefixtures("costly")
def test_what_drivers_measured_counts_for_the_part_of_a_run_that_is_in_the_period(
    resolute: CommandLine,
) -> None:
    whole = rows(resolute, "--by", "user")[1]
    assert [whole[name] for name in ("gpu_busy_hours", "gpu_idle_hours", "energy_kwh")] == [
        "3.0",
        "1.0",
        "2.0",
    ]
    half = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(START + 3600))
    part = rows(resolute, "--by", "user", "--since", half)[-1]
    assert [part[name] for name in ("gpu_hours", "gpu_idle_hours", "energy_kwh")] == ["2.0", "0.5", "1.0"]


def test_a_point_costs_the_hours_by_what_the_metric_gained(
    costly: ScriptedCluster, resolute: CommandLine
) -> None:
    state = costly.state
    for trial, (low, high) in zip(state.trials[:2], ((0.80, 0.90), (0.75, 0.95)), strict=True):
        metric = state.experiments[0].searcher_metric
        state.summaries.append(
            summary_pb2.Summary(
                trial_id=trial.trial_id, group="validation", name=metric, count=2, min=low, max=high
            )
        )
    (whole,) = rows(resolute, "1", "--point", "0.01")
    assert float(whole["gained"]) == pytest.approx(0.2)
    assert whole["slot_hours_a_point"] == "0.15"
    each = rows(resolute, "1", "--by", "trial", "--point", "0.01")
    assert [one["slot_hours_a_point"] for one in each] == ["0.1", "0.1"]
    (other,) = rows(resolute, "2", "--point", "0.01")
    assert other["slot_hours_a_point"] == ""
    assert resolute("cost", "--by", "label", "--point", "1").code == 2

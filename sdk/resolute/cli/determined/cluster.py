"""Machines, slots, tasks, the queue and the master as `det` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from resolute.cli.cluster.machines import Machine
from resolute.cli.cluster.version import Versions
from resolute.cli.determined import experiments
from resolute.cli.determined.spelling import moment, services, text_of
from resolute.cli.determined.trials import task_id
from resolute.cli.display.rendering import Heading, Rendering, Table
from resolute.client.schema.records import ExperimentRecord, JobRecord, SlotRecord, TrialRecord
from resolute.client.schema.states import ExperimentKind

_DEVICES = {"gpu": "cuda"}
_JOB_TYPES = {ExperimentKind.COMMAND: "TYPE_COMMAND", ExperimentKind.TENSORBOARD: "TYPE_TENSORBOARD"}


def _agents(machines: Sequence[Machine]) -> list[dict[str, Any]]:
    version = services().cluster.get().version
    return [
        {
            "id": machine.name,
            "version": version,
            "registered_time": None,
            "num_slots": machine.slots,
            "num_containers": machine.runs,
            "resource_pools": machine.resource_pool,
            "enabled": machine.slots_disabled < machine.slots,
            "draining": machine.draining,
            "addresses": "",
        }
        for machine in machines
    ]


def _slots(slots: Sequence[SlotRecord]) -> list[dict[str, Any]]:
    holders = {slot.trial_id for slot in slots if slot.trial_id}
    names = {number: _task_name(services().trials.get(number)) for number in holders}
    return [
        {
            "agent_id": slot.machine_name,
            "resource_pools": slot.resource_pool,
            "slot_id": str(slot.slot_id),
            "enabled": not slot.disabled,
            "draining": slot.draining,
            "allocation_id": slot.allocation_id or "FREE",
            "task_name": names.get(slot.trial_id, "FREE"),
            "type": _DEVICES.get(slot.kind, slot.kind),
            "device": "",
        }
        for slot in slots
    ]


def _task_name(trial: TrialRecord) -> str:
    return f"Trial {trial.id} (Experiment {trial.experiment_id})"


def _tasks(trials: Sequence[TrialRecord]) -> dict[str, dict[str, Any]]:
    """The trials that have a run, by its allocation."""
    jobs = {job.experiment_id: job for job in services().jobs.list()}
    slots = services().cluster.get().slots
    tasks = dict[str, dict[str, Any]]()
    for holder in trials:
        trial = services().trials.get(holder.uuid)
        if not trial.runs:
            continue
        run, job = trial.runs[-1], jobs.get(trial.experiment_id)
        held = [slot for slot in slots if slot.allocation_id == run.allocation_id]
        tasks[run.allocation_id] = {
            "allocationId": run.allocation_id,
            "name": _task_name(trial),
            "priority": job.priority if job else None,
            "proxyPorts": [],
            "registeredTime": moment(run.start_time),
            "resourcePool": held[0].resource_pool if held else "default",
            "resources": [{"agentDevices": {name: {} for name in {slot.machine_name for slot in held}}}],
            "schedulerType": "priority",
            "slotsNeeded": job.slots_per_trial if job else len(held),
            "taskId": task_id(trial.uuid),
        }
    return tasks


def _task_rows(trials: Sequence[TrialRecord]) -> list[dict[str, Any]]:
    return sorted(_tasks(trials).values(), key=lambda task: task["registeredTime"] or "")


def _draining(slots: Sequence[SlotRecord]) -> list[TrialRecord]:
    """The trials that hold slots."""
    numbers = {slot.trial_id for slot in slots if slot.trial_id}
    return [services().trials.get(number) for number in sorted(numbers)]


def _jobs(jobs: Sequence[JobRecord]) -> list[dict[str, Any]]:
    return [
        _job(job, services().experiments.get(job.experiment_id), ahead=index)
        for index, job in enumerate(jobs)
    ]


def _job(job: JobRecord, experiment: ExperimentRecord, *, ahead: int) -> dict[str, Any]:
    state = "STATE_SCHEDULED" if job.held_slots else "STATE_QUEUED"
    return {
        "allocatedSlots": job.held_slots,
        "entityId": str(job.experiment_id),
        "isPreemptible": True,
        "jobId": experiment.uuid,
        "name": job.name,
        "priority": job.priority,
        "progress": experiment.progress,
        "requestedSlots": job.slots_per_trial * (job.queued_trials + job.allocated_trials),
        "resourcePool": experiments.pool_of(experiment),
        "submissionTime": moment(experiment.create_time),
        "summary": {"jobsAhead": ahead, "state": state},
        "type": _JOB_TYPES.get(experiment.kind, "TYPE_EXPERIMENT"),
        "userId": experiment.owner_id,
        "username": job.owner,
        "weight": job.weight,
        "workspaceId": experiment.workspace_id,
    }


def _master(facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "branding": "",
        "clusterMessage": None,
        "clusterId": facts["cluster_id"],
        "clusterName": "",
        "externalLoginUri": "",
        "externalLogoutUri": "",
        "featureSwitches": [],
        "hasCustomLogo": False,
        "masterId": facts["cluster_id"],
        "product": "PRODUCT_UNSPECIFIED",
        "rbacEnabled": True,
        "ssoProviders": [],
        "strictJobQueueControl": False,
        "telemetryEnabled": False,
        "userManagementEnabled": True,
        "version": facts["version"],
    }


def _version(versions: Versions) -> dict[str, Any]:
    cluster = versions.cluster
    identity, number = (cluster.cluster_id, cluster.version) if cluster else ("", "")
    return {
        "client": {"version": versions.client},
        "master": {"cluster_id": identity, "master_id": identity, "version": number},
        "master_address": versions.address,
    }


def _columns(*named: tuple[str, str]) -> tuple[Heading, ...]:
    """Columns of rows that are written as in JSON."""
    return tuple(Heading(name, _value_of(key)) for name, key in named)


def _value_of(key: str) -> Any:
    return lambda row: row[key]


_AGENTS = _columns(
    ("Agent ID", "id"),
    ("Version", "version"),
    ("Registered Time", "registered_time"),
    ("Slots", "num_slots"),
    ("Containers", "num_containers"),
    ("Resource Pool", "resource_pools"),
    ("Enabled", "enabled"),
    ("Draining", "draining"),
    ("Addresses", "addresses"),
)
_SLOTS = _columns(
    ("Agent ID", "agent_id"),
    ("Resource Pool", "resource_pools"),
    ("Slot ID", "slot_id"),
    ("Enabled", "enabled"),
    ("Draining", "draining"),
    ("Allocation ID", "allocation_id"),
    ("Task Name", "task_name"),
    ("Type", "type"),
    ("Device", "device"),
)
_TASKS = (
    *_columns(
        ("Task ID", "taskId"),
        ("Allocation ID", "allocationId"),
        ("Name", "name"),
        ("Slots Needed", "slotsNeeded"),
        ("Registered Time", "registeredTime"),
    ),
    Heading("Agent", lambda task: ", ".join(task["resources"][0]["agentDevices"]) or "unassigned"),
    *_columns(("Priority", "priority"), ("Resource Pool", "resourcePool")),
    Heading("Ports", lambda _: ""),
)
_JOBS = (
    Heading("#", lambda job: job["summary"]["jobsAhead"]),
    *_columns(("ID", "jobId"), ("Type", "type")),
    Heading("Job Name", lambda job: f"{job['name']} ({job['entityId']})"),
    *_columns(("Priority", "priority")),
    Heading("Submitted", lambda job: job["submissionTime"].replace("T", " ").replace("Z", "+00:00")),
    Heading("Slots (acquired/needed)", lambda job: f"{job['allocatedSlots']}/{job['requestedSlots']}"),
    Heading("State", lambda job: job["summary"]["state"]),
    *_columns(("User", "username")),
)

_TEMPLATES = (
    Heading("Name", lambda template: template.name),
    Heading("Workspace", lambda _: text_of(None)),
    Heading("Config", lambda template: yaml.safe_dump(template.config), when="details"),
)

RENDERINGS = {
    "agent disable": Rendering(
        lambda found: _tasks(_draining(found)), (Table(_TASKS, lambda found: _task_rows(_draining(found))),)
    ),
    "agent list": Rendering(_agents, (Table(_AGENTS, _agents),)),
    "slot list": Rendering(_slots, (Table(_SLOTS, _slots),)),
    "task list": Rendering(_tasks, (Table(_TASKS, _task_rows),)),
    "job list": Rendering(lambda found: {"jobs": _jobs(found)}, (Table(_JOBS, _jobs),)),
    "master info": Rendering(_master),
    "version": Rendering(_version),
    "template list": Rendering(list, (Table(_TEMPLATES),)),
}
"""By the words of the command."""

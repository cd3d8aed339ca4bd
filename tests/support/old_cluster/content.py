"""What a made-up Determined cluster knows. Every message is computed from numbers: no size takes room."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CLUSTER_ID = "5f0c7f3a-0c55-4a5c-9df5-6a2d6a1b7c11"
STATES = ("STATE_COMPLETED", "STATE_ERROR", "STATE_CANCELED")
_BEGIN = 1_600_000_000
USERS = (
    {"id": 1, "username": "admin", "admin": True, "active": True},
    {"id": 2, "username": "determined", "admin": False, "active": True},
    {"id": 3, "username": "carol", "admin": False, "active": True, "displayName": "Carol C."},
    {"id": 4, "username": "dave", "admin": False, "active": False},
    {"id": 5, "username": "erin", "admin": True, "active": True},
)
WORKSPACES = (
    {"id": 1, "name": "Uncategorized", "archived": False, "username": "admin", "userId": 1},
    {"id": 2, "name": "lab", "archived": False, "username": "carol", "userId": 3},
    {"id": 3, "name": "attic", "archived": True, "username": "dave", "userId": 4},
)
PROJECTS = (
    {"id": 1, "workspaceId": 1, "name": "Uncategorized", "archived": False},
    {
        "id": 2,
        "workspaceId": 2,
        "name": "vision",
        "archived": False,
        "username": "dave",
        "userId": 4,
        "description": "sees",
        "notes": [{"name": "plan", "contents": "first this"}],
    },
    {"id": 3, "workspaceId": 3, "name": "old", "archived": True},
)
TEMPLATES = ({"name": "small", "config": {"resources": {"slots_per_trial": 1}}, "workspaceId": 1},)
WEBHOOKS = ({"id": 1, "url": "http://hooks/1", "webhookType": "WEBHOOK_TYPE_SLACK", "triggers": []},)
NOTEBOOKS = ({"id": "n1", "state": "STATE_RUNNING"}, {"id": "n2", "state": "STATE_TERMINATED"})
GROUPS = ({"groupId": 9, "name": "team", "users": [dict(USERS[2]), dict(USERS[3])]},)
_ROLES = {"Editor": 4, "WorkspaceAdmin": 2, "EditorRestricted": 7, "Janitor": 8}
POLICIES: Mapping[int, Mapping[str, Any]] = {0: {"constraints": {"priority_limit": 10}}, 2: {}}


def moment(seconds: float) -> str:
    """A time as the master writes it."""
    whole, fraction = divmod(round((_BEGIN + seconds) * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{fraction:03d}Z"


@dataclass(frozen=True, kw_only=True)
class Content:
    """How much there is."""

    experiments: int = 6
    trials: int = 2
    """Of each experiment."""
    points: int = 20
    """Training reports of each trial; a tenth as many validations."""
    checkpoints: int = 3
    """Of each trial."""
    lines: int = 5
    """Of each trial."""
    directory: Path = Path("/old/checkpoints")
    """Where every third experiment's checkpoints lie; the others' lie in buckets."""
    rbac: bool = True

    def experiment(self, number: int, *, whole: bool = False) -> dict[str, Any]:
        """One experiment; with its configs if that is wanted."""
        project = PROJECTS[number % len(PROJECTS)]
        workspace = WORKSPACES[project["workspaceId"] - 1]  # type: ignore[operator]
        config = self.config(number)
        told = {
            "id": number,
            "name": f"experiment {number}",
            "description": f"what {number} is about",
            "labels": ["moved", f"n{number}"],
            "notes": f"notes of {number}" if whole else "",
            "state": "STATE_ACTIVE" if number > self.experiments else STATES[number % 3],
            "archived": number % 5 == 0,
            "username": USERS[number % 4]["username"],
            "userId": USERS[number % 4]["id"],
            "projectId": project["id"],
            "projectName": project["name"],
            "projectOwnerId": 1,
            "workspaceId": workspace["id"],
            "workspaceName": workspace["name"],
            "jobId": f"job-{number}",
            "numTrials": self.trials,
            "checkpointCount": self.trials * self.checkpoints,
            "searcherType": "random",
            "progress": 1.0,
            "startTime": moment(number * 1000),
            "config": {},
            "originalConfig": "",
        }
        if number <= self.experiments:
            told["endTime"] = moment(number * 1000 + 900)
        if whole:
            told |= {"config": config, "originalConfig": yaml.safe_dump(written_config(number))}
        return told

    def config(self, number: int) -> dict[str, Any]:
        """The effective config, with what the cluster has added."""
        return {**written_config(number), "checkpoint_storage": self.storage(number)}

    def storage(self, number: int) -> dict[str, Any]:
        """Where the checkpoints of an experiment lie."""
        return (
            {"type": "shared_fs", "host_path": str(self.directory), "storage_path": "det"},
            {"type": "s3", "bucket": "old-bucket", "prefix": "ck"},
            {"type": "gcs", "bucket": "old-gcs-bucket"},
        )[number % 3]

    def trials_of(self, experiment: int) -> range:
        """The numbers of the trials of an experiment."""
        first = (experiment - 1) * self.trials + 1
        return range(first, first + self.trials)

    def experiment_of(self, trial: int) -> int:
        """The experiment of a trial."""
        return (trial - 1) // self.trials + 1

    def trial(self, number: int) -> dict[str, Any]:
        """One trial."""
        experiment = self.experiment_of(number)
        return {
            "id": number,
            "experimentId": experiment,
            "state": STATES[number % 3],
            "hparams": {"lr": number / 1000, "layers": number % 4},
            "restarts": number % 2,
            "startTime": moment(experiment * 1000 + 1),
            "endTime": moment(experiment * 1000 + 800),
            "totalBatchesProcessed": self.points * 10,
            "metadata": {"tag": f"t{number}"},
            "summaryMetrics": {
                "avg_metrics": {"loss": {"count": self.points}},
                "validation_metrics": {"error": {"count": self.points // 10}},
                "inference": {"speed": {"count": 1}},
            },
        }

    def reports(self, trial: int, group: str) -> Iterator[dict[str, Any]]:
        """What a trial reported in a group, in the order of the steps."""
        count = {"training": self.points, "validation": self.points // 10, "inference": 1}.get(group, 0)
        start = self.experiment_of(trial) * 1000
        for place in range(1, count + 1):
            steps = place * (100 if group == "validation" else 10)
            yield {
                "trialId": trial,
                "trialRunId": 1,
                "group": group,
                "id": place,
                "archived": False,
                "totalBatches": steps,
                "endTime": moment(start + steps / 10),
                "metrics": _values(trial, group, place),
            }

    def checkpoints_of(self, trial: int) -> Iterator[dict[str, Any]]:
        """The checkpoints of a trial."""
        experiment = self.experiment_of(trial)
        for place in range(1, self.checkpoints + 1):
            steps = place * 10
            deleted = place == 1 and self.checkpoints > 1
            files = self.files(trial, steps)
            yield {
                "uuid": checkpoint_id(trial, steps),
                "state": "STATE_DELETED" if deleted else "STATE_COMPLETED",
                "reportTime": moment(experiment * 1000 + steps),
                "resources": {path: str(len(content)) for path, content in files.items()} | {"code/": "0"},
                "metadata": {
                    "steps_completed": steps,
                    "framework": "torch-1.10",
                    "format": "pickle",
                    "note": {"of": trial},
                },
                "training": {
                    "trialId": trial,
                    "experimentId": experiment,
                    "experimentConfig": self.config(experiment),
                    "hparams": {"lr": trial / 1000},
                },
            }

    @staticmethod
    def files(trial: int, steps: int) -> dict[str, bytes]:
        """The files of a checkpoint."""
        return {"weights.json": json.dumps({"trial": trial, "steps": steps}).encode()}

    def write_files(self) -> None:
        """Writes the checkpoints that lie in the directory."""
        for experiment in range(1, self.experiments + 1):
            if self.storage(experiment)["type"] == "shared_fs":
                for trial in self.trials_of(experiment):
                    for checkpoint in self.checkpoints_of(trial):
                        steps = checkpoint["metadata"]["steps_completed"]
                        place = self.directory / "det" / checkpoint["uuid"]
                        (place / "code").mkdir(parents=True)
                        for path, content in self.files(trial, steps).items():
                            (place / path).write_bytes(content)

    def log(self, trial: int) -> Iterator[dict[str, Any]]:
        """What a trial wrote."""
        for place in range(self.lines):
            yield {
                "id": str(place),
                "trialId": trial,
                "timestamp": moment(self.experiment_of(trial) * 1000 + place),
                "message": f"[then] trial {trial} line {place}\n",
                "log": f"trial {trial} line {place}\n",
                "level": "LOG_LEVEL_WARNING" if place % 2 else "LOG_LEVEL_INFO",
                "stdtype": "stderr" if place % 2 else "stdout",
                "rankId": place % 2,
                "source": "task",
                "agentId": "agent-1",
                "containerId": "c1",
            }

    def models(self) -> list[dict[str, Any]]:
        """The registered models."""
        return [
            {
                "id": 1,
                "name": "best of all",
                "description": "d",
                "notes": "n",
                "labels": ["prod"],
                "metadata": {"k": 1},
                "archived": False,
                "username": "carol",
                "userId": 3,
                "workspaceId": 2,
                "numVersions": 2,
                "creationTime": moment(50_000),
                "lastUpdatedTime": moment(60_000),
            }
        ]

    def versions(self) -> list[dict[str, Any]]:
        """The versions of the model; the second was deleted there."""
        return [
            {
                "id": number,
                "version": number,
                "name": f"v{number}",
                "comment": "c",
                "notes": "",
                "labels": [],
                "metadata": {},
                "username": "carol",
                "userId": 3,
                "creationTime": moment(50_000 + number),
                "lastUpdatedTime": moment(50_000 + number),
                "model": self.models()[0],
                "checkpoint": list(self.checkpoints_of(1))[-1],
            }
            for number in (1, 3)
        ]


def written_config(number: int) -> dict[str, Any]:
    """The config as its author wrote it; every seventh asks for a search that is gone."""
    return {
        "name": f"experiment {number}",
        "entrypoint": "python3 train.py",
        "hyperparameters": {"lr": {"type": "log", "base": 10, "minval": -3, "maxval": -1}, "layers": 2},
        "searcher": {
            "name": "pbt" if number % 7 == 0 else "random",
            "metric": "error",
            "smaller_is_better": True,
            "max_trials": 2,
            "max_length": {"batches": 200},
        },
        "max_restarts": 2,
    }


def checkpoint_id(trial: int, steps: int) -> str:
    """The UUID of a checkpoint."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{trial}/{steps}"))


def roles_of(user: int) -> list[dict[str, Any]]:
    """The roles that a user was given."""
    given: Mapping[int, Sequence[tuple[str, Mapping[str, Any]]]] = {
        3: [("WorkspaceAdmin", {"scopeWorkspaceId": 3}), ("Janitor", {"scopeWorkspaceId": 3})],
        5: [("WorkspaceAdmin", {"scopeCluster": True}), ("EditorRestricted", {"scopeWorkspaceId": 2})],
    }
    return [
        {
            "role": {"roleId": _ROLES[name], "name": name},
            "groupRoleAssignments": [],
            "userRoleAssignments": [
                {"userId": user, "roleAssignment": {"role": {"roleId": _ROLES[name]}, **scope}}
            ],
        }
        for name, scope in given.get(user, ())
    ]


def roles_of_group() -> dict[str, Any]:
    """The roles that the group was given."""
    return {
        "roles": [{"roleId": _ROLES["Editor"], "name": "Editor"}],
        "assignments": [{"roleId": _ROLES["Editor"], "scopeCluster": False, "scopeWorkspaceIds": [2]}],
    }


@cache
def model_definition() -> str:
    """The code of every experiment."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("train.py")
        content = b"print('trained')\n"
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return base64.b64encode(buffer.getvalue()).decode()


def _values(trial: int, group: str, place: int) -> dict[str, Any]:
    if group == "validation":
        value: Any = "NaN" if place == 2 and trial % 2 else trial / (place + 1)
        return {"validation_metrics": {"error": value, "nested": {"f1": 0.5}}}
    if group == "inference":
        return {"avg_metrics": {"speed": trial, "device": "a100"}}
    return {"avg_metrics": {"loss": trial + 1 / place}, "batch_metrics": []}

"""A valid request for every call: generated from its descriptor, with the names of objects that are there."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from faults.fuzz.world import World
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from resolute.contracts.values import to_value

_MAX_DEPTH = 6
_NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32,
    FieldDescriptor.CPPTYPE_INT64,
    FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_UINT64,
}
_SEARCH = {
    "metric": "loss",
    "smaller_is_better": True,
    "seed": 7,
    "space": {"hyperparameters": {"x": {"double_range": {"minval": 0.0, "maxval": 1.0, "count": 3}}}},
    "adaptive_asha": {
        "max_length": 16,
        "max_trials": 4,
        "divisor": 4.0,
        "max_rungs": 2,
        "max_concurrent_trials": 4,
        "mode": 2,
    },
}
_BLOCK = {
    "group": "training",
    "names": ["loss"],
    "sequences": [0],
    "steps": [1],
    "times": [1.0],
    "values": [0.5],
}
_LINES = {
    "messages": ["a line"],
    "times": [1],
    "levels": [3],
    "ranks": [0],
    "writer_indexes": [0],
    "writers": [{"stdtype": "stdout", "origin": "task"}],
}


class Bases:
    """Makes requests that are right.

    Args:
        world: The objects to name.
        rng: Chooses among what is right.
    """

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng

    def request(self, method: MethodDescriptor) -> Any:
        """Returns a right request of a call; for a client stream, its first message."""
        request = GetMessageClass(method.input_type)()
        self._fill(request, depth=0)
        override = _OVERRIDES.get(method.name)
        if override is not None:
            for field, value in override(self._world).items():
                request.ClearField(field)
                request.MergeFrom(type(request)(**{field: value}))
        return request

    def _fill(self, message: Any, *, depth: int) -> None:
        chosen = {oneof.name: self._rng.choice(oneof.fields).name for oneof in message.DESCRIPTOR.oneofs}
        for field in message.DESCRIPTOR.fields:
            oneof = field.containing_oneof
            if oneof is not None and len(oneof.fields) > 1 and chosen[oneof.name] != field.name:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                continue
            if field.is_repeated:
                self._fill_repeated(message, field)
            elif field.message_type is not None:
                self._fill_message(message, field, depth=depth)
            elif (value := self._scalar(field)) is not None:
                setattr(message, field.name, value)

    def _fill_repeated(self, message: Any, field: FieldDescriptor) -> None:
        one = self._known(field.name.removesuffix("s"), field)
        if one is not None:
            getattr(message, field.name).append(one)
        elif field.name in {"subscriptions", "experiments"} and field.message_type is not None:
            self._fill(getattr(message, field.name).add(), depth=1)

    def _fill_message(self, message: Any, field: Any, *, depth: int) -> None:
        kind = field.message_type.name
        child = getattr(message, field.name)
        fill = _KINDS.get(kind)
        if fill is not None:
            if (
                kind != "Timestamp"
                or field.name not in {"start_time", "end_time"}
                or self._rng.random() < 0.3
            ):
                fill(child, self._world)
        elif depth < _MAX_DEPTH:
            child.SetInParent()
            self._fill(child, depth=depth + 1)

    def _scalar(self, field: Any) -> Any:
        known = self._known(field.name, field)
        if known is not None:
            return known
        optional = field.containing_oneof is not None
        if optional and self._rng.random() < 0.5:
            return None
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return self._rng.random() < 0.5
        if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
            return self._rng.random()
        if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
            return self._rng.choice(field.enum_type.values).number
        if field.cpp_type in _NUMBERS:
            return self._rng.randrange(1, 4)
        return None

    def _known(self, name: str, field: FieldDescriptor) -> Any:
        if field.cpp_type in _NUMBERS:
            return self._world.numbers.get(name)
        if field.type != FieldDescriptor.TYPE_STRING:
            return None
        if name in {"request_id", "external_run_id"}:
            return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        if name == "config_yaml":
            return self._world.config
        if name in {"name", "user_name"}:
            return f"n{self._rng.getrandbits(40):x}"
        if name in {"key", "source", "group", "metric", "description", "notes", "comment", "label"}:
            return self._rng.choice(["training", "validation", "loss"])
        return self._world.names.get(name)


_KINDS: Mapping[str, Callable[[Any, World], object]] = {
    "Timestamp": lambda message, _: message.FromSeconds(int(time.time())),
    "Duration": lambda message, _: message.FromSeconds(1),
    "FieldMask": lambda _, __: None,
    "Value": lambda message, _: message.CopyFrom(to_value({"a": 1, "b": [True, None, "x", 0.5]})),
    "SearchSpec": lambda message, _: message.MergeFrom(type(message)(**_SEARCH)),
    "Storage": lambda message, world: message.CopyFrom(world.storage),
    "ExperimentKey": lambda message, world: message.MergeFrom(
        type(message)(number=world.numbers["experiment_number"])
    ),
    "TrialKey": lambda message, world: message.MergeFrom(type(message)(trial_id=world.names["trial_id"])),
    "ModelKey": lambda message, world: message.MergeFrom(type(message)(model_id=world.names["model_id"])),
}
"""How messages are filled that mean something by themselves."""


def _update(message: str, *paths: str, **fields: Any) -> Callable[[World], dict[str, Any]]:
    def override(world: World) -> dict[str, Any]:
        named = {"user": "user_id", "workspace": "workspace_id", "project": "project_id"}.get(message)
        owner = {named: world.numbers[named]} if named else {}
        return {message: {**owner, **fields}, "update_mask": {"paths": paths}, "etag": ""}

    return override


def _search_trial(world: World) -> dict[str, Any]:
    return {"trial_id": world.names["search_trial_id"]}


def _watched(world: World) -> dict[str, Any]:
    """An experiment and the queue, by keys of their own."""
    experiment = {"number": world.numbers["experiment_number"]}
    return {"experiments": [{"key": "a", "experiment": experiment}], "queue": {"key": "queue"}}


_OVERRIDES: Mapping[str, Callable[[World], dict[str, Any]]] = {
    "CreateExperiment": lambda world: {
        "spec": {"config_yaml": world.config, "paused": True},
        "model_definition": b"",
    },
    "CreateExperimentInChunks": lambda world: {
        "header": {"request_id": str(uuid.uuid4()), "spec": {"config_yaml": world.config, "paused": True}}
    },
    "ValidateConfig": lambda _: {"template": ""},
    "ContinueExperiment": lambda _: {"config_yaml": "searcher: {max_trials: 4}", "validate_only": True},
    "ContinueTrial": lambda _: {"config_yaml": "", "validate_only": True},
    "ForkExperiment": lambda _: {
        "config_yaml": "name: forked",
        "config_is_whole": True,
        "validate_only": True,
    },
    "SetTemplate": lambda _: {"config_yaml": "max_restarts: 1"},
    "SetSecret": lambda _: {"workspace_id": 0, "name": "hub", "value": "a value to be kept"},
    "FollowServerLog": lambda _: {"tail": 1, "follow": False},
    "GetTemplate": lambda world: {"name": world.names["template"]},
    "DeleteTemplate": lambda world: {"name": world.names["template"]},
    "UpdateExperiment": _update("experiment", "name", "labels", name="renamed", labels=["a"]),
    "UpdateTrial": _update("trial", "labels", "notes", labels=["a"], notes="text"),
    "UpdateUser": _update("user", "role", role=2),
    "UpdateToken": lambda _: {"token": {"description": "text"}, "update_mask": {"paths": ["description"]}},
    "UpdateWorkspace": _update("workspace", "archived", archived=False),
    "UpdateProject": _update("project", "description", description="text"),
    "UpdateJob": _update("job", "priority", priority=3),
    "UpdateModel": _update("model", "description", description="text"),
    "UpdateVersion": lambda _: {
        "version_number": 1,
        "version": {"comment": "text"},
        "update_mask": {"paths": ["comment"]},
        "etag": "",
    },
    "GetVersion": lambda _: {"version_number": 1},
    "DeleteVersion": lambda _: {"version_number": 1},
    "SetQuota": lambda _: {"quota": {"slots": 1_000_000}, "etag": ""},
    "CreateModel": lambda _: {"model": {"name": f"m{uuid.uuid4()}"}},
    "CreateVersion": lambda _: {"version": {"comment": "text"}},
    "CreateUser": lambda _: {"role": 1},
    "SetPassword": lambda _: {"password": "a long enough password"},
    "BeginRun": lambda _: {"hparams": to_value({"x": 1}), "config": to_value({"description": "r"})},
    "EndRun": lambda _: {"outcome": 1},
    "SetTrialStatus": lambda _: {"metadata": to_value({"a": 1})},
    "CollectCheckpoints": lambda _: {"preview": True},
    "BeginCheckpoint": lambda _: {"checkpoint_id": str(uuid.uuid4())},
    "CommitCheckpoint": lambda world: {
        "checkpoint_id": world.names["checkpoint_id"],
        "files": [{"path": "model.pt", "size": 7}],
        "metadata": to_value({"steps_completed": 1}),
        "multipart_uploads": [],
    },
    "CommitCheckpointInChunks": lambda world: {
        "chunk": {
            "checkpoint_id": world.names["checkpoint_id"],
            "files": [{"path": "model.pt", "size": 7}],
            "metadata": to_value({"steps_completed": 1}),
        }
    },
    "AbortCheckpoint": lambda world: {"checkpoint_id": world.names["uploading_checkpoint_id"]},
    "ReuseFiles": lambda world: {
        "checkpoint_id": world.names["uploading_checkpoint_id"],
        "files": [{"path": "model.pt", "size": 7}],
    },
    "PresignUploads": lambda world: {
        "checkpoint_id": world.names["uploading_checkpoint_id"],
        "files": [{"path": "model.pt", "size": 7}],
    },
    "PresignDownloads": lambda _: {"paths": ["model.pt"]},
    "ReadFile": lambda _: {"path": "model.pt", "offset": 0},
    "HoldCheckpoint": lambda _: {"hold_seconds": 60.0},
    "UpdateMetadata": lambda _: {"etag": ""},
    "DeleteFiles": lambda _: {"globs": ["*.none"]},
    "WatchExperiments": _watched,
    "Watch": lambda world: {"experiments": _watched(world)},
    "AssignIds": lambda _: {"workspace_ids": {"Uncategorized": 1}, "user_ids": {"admin": 1}},
    "IngestReports": lambda _: {"first_sequence": 0, "count": 1, "blocks": [_BLOCK]},
    "IngestLines": lambda _: {"first_sequence": 0, "lines": _LINES},
    "ListLines": lambda world: {"filter": {"trial_id": world.names["trial_id"], "text": "line"}},
    "FollowLines": lambda world: {
        "subscriptions": [{"key": "a", "filter": {"trial_id": world.names["trial_id"]}}]
    },
    "GetSeries": lambda _: {"max_points": 10, "group": "training", "name": "loss"},
    "ListSeries": lambda world: {
        "series": [{"trial_id": world.names["trial_id"], "group": "training", "name": "loss"}]
    },
    "CreateSearch": lambda _: {"search_id": str(uuid.uuid4())},
    "GetOperation": _search_trial,
    "CompleteOperation": lambda world: {**_search_trial(world), "run": 1, "length": 4, "metric": 0.5},
    "ReportProgress": _search_trial,
    "ReportValidations": lambda world: {
        **_search_trial(world),
        "validations": [{"sequence": 0, "metric": 0.5}],
    },
    "RetryTrial": _search_trial,
    "ReportEvents": lambda _: {
        "events": [{"event_id": "e1", "trial_exited": {"trial_key": str(uuid.uuid4()), "reason": 1}}]
    },
    "ListEvents": lambda _: {"kinds": ["started"]},
    "PollEvents": lambda world: {"search_id": world.names["custom_search_id"], "max_wait": {}},
    "PostOperations": lambda world: {
        "search_id": world.names["custom_search_id"],
        "operations": [{"create": {"trial_key": str(uuid.uuid4()), "hparams": to_value({"x": 1})}}],
        "answered_sequence": 1,
    },
    "ExtendSearch": lambda _: {"extension": {"max_trials": 5}},
    "SimulateSearch": lambda _: {"curves": [{"lengths": [1.0, 4.0], "metrics": [0.9, 0.5]}], "slots": 2},
    "ListTrialValidations": lambda _: {"page_size": 10},
}

"""Requests that name what a workspace holds, for every call of the contract."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from support.clusters.tenants import Tenant

_NESTED = ("filter", "subscriptions", "series", "experiments", "workspace", "project", "model", "user")
_MASKS = {
    "UpdateExperiment": "notes",
    "UpdateTrial": "notes",
    "UpdateJob": "priority",
    "UpdateWorkspace": "archived",
    "UpdateProject": "notes",
    "UpdateModel": "notes",
    "UpdateVersion": "notes",
}


def request_of(method: MethodDescriptor, tenant: Tenant) -> Any:
    """A request of a call that names objects of a workspace, wherever it names any."""
    request = GetMessageClass(method.input_type)()
    _fill(request, _names(tenant, method.name), tenant)
    if method.name in _MASKS:
        request.update_mask.paths.append(_MASKS[method.name])  # type: ignore[attr-defined]
    if method.name == "RaiseAlert":
        request.alert_id, request.title, request.level = str(uuid.uuid4()), "late", "info"  # type: ignore[attr-defined]
    for field in ("spec", "header"):
        if method.name.startswith("CreateExperiment") and field in request.DESCRIPTOR.fields_by_name:
            inner = getattr(request, field)
            spec = inner.spec if field == "header" else inner
            spec.config_yaml, spec.paused = tenant.config(), True
    return request


def _names(tenant: Tenant, method: str) -> Mapping[str, Any]:
    # Experiments of the cluster have a search, those of runs elsewhere have reports and checkpoints.
    reports = method in {"GetBestValidation", "ListSummaries"}
    return {
        "experiment_id": tenant.trial_experiment_id if reports else tenant.experiment_id,
        "search_id": tenant.experiment_id,
        "trial_id": tenant.trial_id,
        "checkpoint_id": tenant.checkpoint_id,
        "allocation_id": tenant.allocation_id,
        "workspace_id": tenant.workspace_id,
        "project_id": tenant.project_id,
        "path": "weights",
        "version_number": 1,
        "answered_sequence": 1,
        "hold_seconds": 60.0,
    }


def _fill(message: Message, names: Mapping[str, Any], tenant: Tenant) -> None:
    for field in message.DESCRIPTOR.fields:
        singular = field.name.removesuffix("s") if field.is_repeated else field.name
        kind = field.message_type.name if field.message_type else ""
        if kind == "ExperimentKey":
            getattr(message, field.name).experiment_id = names["experiment_id"]
        elif kind == "TrialKey":
            getattr(message, field.name).trial_id = tenant.trial_id
        elif kind == "ModelKey":
            getattr(message, field.name).name = tenant.model_name
        elif kind and field.name in _NESTED:
            inner = getattr(message, field.name)
            _fill(inner.add() if field.is_repeated else inner, names, tenant)
        elif singular in names and not kind:
            if field.is_repeated:
                getattr(message, field.name).append(names[singular])
            else:
                setattr(message, field.name, names[singular])
        elif field.name == "key" and not kind:
            message.key = "k"  # type: ignore[attr-defined]

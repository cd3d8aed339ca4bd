"""A cluster in which everything that is text was written by somebody hostile to terminals."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from support.services.in_process import Running, serving
from support.services.stand_ins.no_roles import NoRoles

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2, models_service_pb2
from resolute.api.common.v1 import value_pb2
from resolute.api.experiments.v1 import (
    access_service_pb2,
    cluster_service_pb2,
    continuation_service_pb2,
    experiment_pb2,
    experiments_service_pb2,
    jobs_service_pb2,
    retention_service_pb2,
    trial_pb2,
    trials_service_pb2,
    workspaces_service_pb2,
)
from resolute.api.logs.v1 import logs_service_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.api.searcher.v1 import searcher_service_pb2
from resolute_serving.server.service import Blueprint

MARK = "evil"
HOSTILE = f"{MARK}\x1b[2J\x1b]0;owned\x07\x9b31m\x08\x7f\x85\u202e\u2066\x1b[31mred"
"""Clears the screen, sets the title, begins a C1 sequence, goes back, turns the text; last a colour."""

_FILES = (
    access_service_pb2,
    checkpoints_service_pb2,
    cluster_service_pb2,
    continuation_service_pb2,
    experiments_service_pb2,
    jobs_service_pb2,
    logs_service_pb2,
    metrics_service_pb2,
    models_service_pb2,
    retention_service_pb2,
    searcher_service_pb2,
    trials_service_pb2,
    workspaces_service_pb2,
)
_ENUMS = {
    "resolute.api.experiments.v1.ExperimentState": experiment_pb2.EXPERIMENT_STATE_COMPLETED,
    "resolute.api.experiments.v1.TrialState": trial_pb2.TRIAL_STATE_COMPLETED,
    "resolute.api.checkpoints.v1.CheckpointState": checkpoint_pb2.CHECKPOINT_STATE_COMPLETED,
}
_SPECIAL = {
    **dict.fromkeys(("experiment_id", "trial_id", "checkpoint_id", "trial_ids"), str(uuid.UUID(int=7))),
    "state_json": json.dumps(
        {
            "sequence": 1,
            "requested": 1,
            "closed": 0,
            "over": HOSTILE,
            "method": {"rungs": [{"top": 1, "entries": [[HOSTILE, 1, 1]]}]},
        }
    ),
}
"""Fields that clients read as something else than text."""
_DEPTH = 8


def hostile_message(kind: Descriptor, depth: int = 0) -> Any:
    """A message whose texts are all hostile and whose lists have one element each."""
    message: Any = message_factory.GetMessageClass(kind)()
    if kind.full_name == value_pb2.Value.DESCRIPTOR.full_name:
        message.map_value.fields[HOSTILE].string_value = HOSTILE
        message.map_value.fields["searcher"].map_value.fields["name"].string_value = HOSTILE
        return message
    if depth < _DEPTH:
        for field in kind.fields:
            if field.containing_oneof is None or field.containing_oneof.fields[0] is field:
                _fill(message, field, depth)
    return message


def _fill(message: Any, field: FieldDescriptor, depth: int) -> None:
    if field.name == "next_page_token" or (field.message_type and field.message_type.GetOptions().map_entry):
        return
    if field.message_type is not None:
        value = hostile_message(field.message_type, depth + 1)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            getattr(message, field.name).CopyFrom(value)
        return
    one = _SPECIAL.get(field.name, _scalar(field))
    if field.is_repeated:
        getattr(message, field.name).append(one)
    else:
        setattr(message, field.name, one)


def _scalar(field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        return _ENUMS.get(
            field.enum_type.full_name, field.enum_type.values[min(1, len(field.enum_type.values) - 1)].number
        )
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return HOSTILE.encode() if field.type == FieldDescriptor.TYPE_BYTES else HOSTILE
    return False if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else 1


class _Service:
    name = "hostile"
    grpc_names: Sequence[str] = ("hostile",)
    access_lookup = NoRoles()

    def register(self, server: grpc.aio.Server) -> None:
        for file in _FILES:
            for service in file.DESCRIPTOR.services_by_name.values():
                handlers = {method.name: _handler(method) for method in service.methods}
                server.add_generic_rpc_handlers(
                    (grpc.method_handlers_generic_handler(service.full_name, handlers),)
                )

    async def start(self) -> None:
        """Nothing runs in the background."""

    async def stop(self) -> None:
        """Nothing runs in the background."""


def _handler(method: MethodDescriptor) -> Any:
    answer = hostile_message(method.output_type)

    async def single(_request: Any, _context: Any) -> Any:
        return answer

    async def stream(_request: Any, _context: Any) -> AsyncIterator[Any]:
        yield answer

    kinds = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    make: Any = kinds[method.client_streaming, method.server_streaming]
    return make(
        stream if method.server_streaming else single,
        request_deserializer=message_factory.GetMessageClass(method.input_type).FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


@contextmanager
def hostile_cluster(directory: Path) -> Iterator[Running]:
    """Serves it in a thread until the block ends."""
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), []
    stop = asyncio.Event()

    async def serve() -> None:
        blueprint = Blueprint(name="hostile", package="", create=lambda _environment: _Service())
        async with serving([blueprint], directory) as running:
            found.append(running)
            ready.set()
            await stop.wait()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run, name="hostile-cluster", daemon=True)
    thread.start()
    assert ready.wait(60), "the cluster did not start"
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)

"""Information for the processes of a trial: the documented info, and the connection to the services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict

from resolute.api.experiments.v1 import experiment_pb2
from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.values import to_mapping
from resolute.info import TRIAL, ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo
from resolute.runtime.connection import Connection
from resolute.spool.delivery.requests import RunIdentity
from resolute_launch.container.task import Task

_COMMAND = "COMMAND"
"""Type of a command, which scripts tell from trials. TensorBoard, whose script is ours, works as a trial."""


def cluster_info(task: Task, *, rendezvous: RendezvousInfo | None) -> ClusterInfo:
    """Puts together everything that ``get_cluster_info`` gives to the trial.

    Args:
        task: The run's task.
        rendezvous: Who takes part; None before that is known.
    """
    spec, order = task.spec, task.order
    is_command = spec.kind == experiment_pb2.EXPERIMENT_KIND_COMMAND
    return ClusterInfo(
        master_url=order.http_url or f"{'http' if order.tls is None else 'https'}://{order.master}",
        cluster_id=spec.cluster_id,
        agent_id=order.agent_id,
        slot_ids=order.slot_ids,
        task_id=f"trial-{spec.trial_id}",
        allocation_id=spec.allocation_id,
        session_token=task.run.read_token() or order.token,
        task_type=_COMMAND if is_command else TRIAL,
        master_cert_name=(order.tls or {}).get("server_name") or None,
        master_cert_file=_authority_file(task),
        latest_checkpoint=spec.latest_checkpoint_id or None,
        trial_info=None if is_command else _trial_info(task),
        rendezvous_info=rendezvous,
        resources_info=ResourcesInfo(order.devices if order.slot_kind == "gpu" else ()),
        connection=_connection(task),
    )


def _authority_file(task: Task) -> str | None:
    """Where the processes of the trial find whom to trust; None for a plain port, or public authorities."""
    tls = ClientTls.from_json(task.order.tls)
    if tls is None or tls.authority is None:
        return None
    path = task.run.path / "master.pem"
    if not path.exists():
        write_atomically(path, tls.authority)
    return str(path)


def run_identity(task: Task) -> RunIdentity:
    """Whose reports and lines the run directory holds."""
    spec, searcher = task.spec, _searcher(task.config)
    return RunIdentity(
        trial_id=spec.trial_id,
        run=spec.run,
        experiment_id=spec.experiment_id,
        searcher_metric=str(searcher.get("metric") or ""),
        smaller_is_better=bool(searcher.get("smaller_is_better", True)),
        time_metric=str(searcher.get("time_metric") or "") if spec.time_driven else "",
        container="" if task.single_container else str(task.order.container_rank),
        agent=task.order.agent_id,
        storage=MessageToDict(spec.storage, preserving_proto_field_name=True),
    )


def single_container_rendezvous(order: LaunchOrder) -> RendezvousInfo:
    """The rendezvous of a container that has no peers."""
    return RendezvousInfo([order.bind_address], 0, [len(order.slot_ids)])


def _trial_info(task: Task) -> TrialInfo:
    spec = task.spec
    return TrialInfo(
        trial_id=spec.trial_number,
        experiment_id=spec.experiment_number,
        trial_seed=spec.trial_seed,
        hparams=to_mapping(spec.hparams),
        config=dict(task.config),
        steps_completed=spec.steps_completed,
        trial_run_id=spec.run,
        debug=bool(task.config.get("debug", False)),
        skipped_batches=[(skipped.first, skipped.end) for skipped in spec.skipped_batches],
    )


def _connection(task: Task) -> Connection:
    spec, searcher = task.spec, _searcher(task.config)
    return Connection(
        address=task.order.master,
        experiment_id=spec.experiment_id,
        trial_id=spec.trial_id,
        run=spec.run,
        token_path=str(task.run.token_file),
        tls=task.order.tls is not None,
        storage=MessageToDict(spec.storage, preserving_proto_field_name=True),
        searcher_metric=str(searcher.get("metric") or ""),
        smaller_is_better=bool(searcher.get("smaller_is_better", True)),
        time_driven=spec.time_driven,
        trace_id=spec.trace_id,
    )


def _searcher(config: Mapping[str, Any]) -> Mapping[str, Any]:
    section = config.get("searcher")
    return section if isinstance(section, Mapping) else {}

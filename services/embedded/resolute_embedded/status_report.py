"""The output of `resolute status`."""

from __future__ import annotations

from typing import Any

from resolute.api.experiments.v1 import cluster_service_pb2, cluster_service_pb2_grpc
from resolute.client.connection.home import LocalCluster
from resolute.rpc.channel import open_channel


def read_status(cluster: LocalCluster) -> dict[str, Any]:
    """Asks a running cluster for its slots and its queue.

    Raises:
        ResoluteError: It does not answer.
    """
    with open_channel(cluster.address, token=lambda: cluster.token_path.read_text().strip()) as channel:
        stub = cluster_service_pb2_grpc.ClusterServiceStub(channel)
        answer = stub.GetCluster(cluster_service_pb2.GetClusterRequest())
    slots = [
        {
            "slot": slot.slot_id,
            "kind": cluster_service_pb2.SlotKind.Name(slot.kind).removeprefix("SLOT_KIND_").lower(),
            "trial": slot.holder.trial_number or None,
            "disabled": slot.disabled,
        }
        for slot in answer.slots
    ]
    return {
        "running": True,
        "address": cluster.address,
        "http_url": cluster.http_url,
        "pid": cluster.pid,
        "cluster_id": answer.cluster_id,
        "version": answer.version,
        "slots": slots,
        "queued_trials": answer.queued_trials,
        "problems": list(answer.problems),
    }


def show_status(report: dict[str, Any]) -> str:
    """Writes a report for people."""
    lines = [f"Resolute {report['version']} is up at {report['address']} (process {report['pid']})"]
    if report["http_url"]:
        lines.append(f"  HTTP: {report['http_url']}")
    for slot in report["slots"]:
        use = "free" if slot["trial"] is None else f"trial {slot['trial']}"
        out_of_use = ", disabled" if slot["disabled"] else ""
        lines.append(f"  slot {slot['slot']} ({slot['kind']}): {use}{out_of_use}")
    lines.append(f"  trials in the queue: {report['queued_trials']}")
    lines += [f"  problem: {problem}" for problem in report["problems"]]
    return "\n".join(lines)

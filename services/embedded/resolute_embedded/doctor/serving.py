"""Checks of the running cluster: its process, and the data that runs have left."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from resolute.client.connection.home import LocalCluster
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.lock import is_locked
from resolute.errors import FailedPreconditionError, ResoluteError
from resolute.rpc.channel import open_channel
from resolute_embedded.doctor.findings import Finding, fault, good, warning
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.local.slots import detect_slots

_ANSWER_SECONDS = 10.0


def check_services(state: StateDirectory) -> Iterator[Finding]:
    """Looks at the lock, the port, the services, the slots and the run directories."""
    served = state.lock.is_held()
    try:
        endpoint = state.home.read_endpoint()
    except FailedPreconditionError as error:
        yield fault("endpoint", str(error), remedy="remove the file and run `resolute up` again")
        return
    yield _lock(state, endpoint, served=served)
    if served and endpoint is not None:
        yield from _services(endpoint)
    elif not served:
        yield _port(state.ports.runs.last() or state.ports.people.last())
    slots = detect_slots()
    yield good("slots", f"this machine has {len(slots)} ({slots[0].kind.value})")
    yield _runs(state, served=served)


def _lock(state: StateDirectory, endpoint: LocalCluster | None, *, served: bool) -> Finding:
    if not served:
        return good("lock", f"no cluster serves {state.home.path}")
    if endpoint is None:
        return warning(
            "lock",
            "a process holds the lock and does not serve: it starts, or stands by for another machine",
            remedy="if it stays like this without --standby, look into up.log and up.out",
        )
    if ProcessIdentity.of(endpoint.pid) is None:
        return fault(
            "lock",
            f"endpoint.json names process {endpoint.pid}, which has ended, while another holds the lock",
            remedy="end the holder by hand (its number is in the file `lock`), then run `resolute up`",
        )
    return good("lock", f"process {endpoint.pid} serves {state.home.path}")


def _services(endpoint: LocalCluster) -> Iterator[Finding]:
    try:
        with open_channel(endpoint.address, token=lambda: endpoint.token_path.read_text().strip()) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(service=""), timeout=_ANSWER_SECONDS)
    except (ResoluteError, grpc.RpcError, OSError) as error:
        yield fault(
            "services",
            f"{endpoint.address} does not answer: {error}",
            remedy="look into up.log; restart by `resolute down --keep-trials` and `resolute up`",
        )
        return
    if answer.status != health_pb2.HealthCheckResponse.SERVING:
        yield fault("services", "some service cannot work", remedy="look into up.log for the reason")
    else:
        yield good("services", f"all serve at {endpoint.address}")


def _port(port: int) -> Finding:
    if not port:
        return good("port", "a free one is chosen at the first start")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return warning(
                "port",
                f"another program has port {port}, where trials of the last start look for the services",
                remedy="end that program before `resolute up`, or running trials will not be adopted",
            )
    return good("port", f"{port} is free")


def _runs(state: StateDirectory, *, served: bool) -> Finding:
    folders = sorted(state.runs.glob("*/*/launch.json")) if state.runs.is_dir() else []
    alive = [folder for folder in folders if is_locked(RunDirectory(folder.parent).lock_file)]
    detail = f"{len(folders)} run directories, {len(alive)} with a living supervisor"
    if len(folders) > len(alive) and not served:
        return warning("runs", detail, remedy="`resolute up` settles the others and sends what they left")
    return good("runs", detail)

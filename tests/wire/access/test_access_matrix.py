"""Every call of every service, by every kind of caller, on what two workspaces hold."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from support.calls.contract_methods import methods, path
from support.clusters.tenants import Tenant, Tenants, tenants
from wire.access import expected
from wire.access.requests import request_of

from resolute.contracts.values import to_value
from resolute.errors import NotFoundError, PermissionDeniedError
from resolute_serving.auth.authorization import authorize
from resolute_serving.auth.policy.permissions import PERMISSIONS
from resolute_serving.auth.policy.service_accounts import may_call
from resolute_serving.context import Anonymous, Principal, Role, ServiceAccount, TrialRun, User

DEADLINE = 60.0
SILENT = {"WatchSignals"}
"""Streams that may have nothing to say at first."""
CREATES = {"CreateExperiment", "CreateExperimentInChunks", "BeginRun"}
"""Calls that place something where a config says, so that only making them shows who may."""
OWN = {"SetPassword", "CreateToken", "ListTokens", "UpdateToken", "RevokeToken"}
"""Calls whose handlers let users do what is their own."""


@dataclass(frozen=True)
class Caller:
    """Who makes the calls."""

    name: str
    principal: Principal
    cluster: Role = Role.MEMBER
    in_alpha: Role = Role.MEMBER

    def role_in(self, tenant: Tenant) -> Role:
        """The role that counts in a workspace."""
        return max(
            self.cluster, self.in_alpha if tenant.name == "alpha" else Role.MEMBER, key=list(Role).index
        )


def is_allowed(method: MethodDescriptor, caller: Caller, tenant: Tenant) -> bool:
    """What the test's own list of roles says."""
    name, role = method.name, caller.role_in(tenant)
    if name in expected.PUBLIC:
        return True
    if isinstance(caller.principal, ServiceAccount):
        return may_call(caller.principal.name, path(method))
    if not isinstance(caller.principal, User):
        return False
    limited = caller.principal.workspace_id or caller.principal.read_only
    if limited and name in expected.PERSONAL:
        return False
    needed = {
        **dict.fromkeys(expected.WORKSPACE_VIEWER, Role.VIEWER),
        **dict.fromkeys(expected.WORKSPACE_EDITOR | expected.CONFIG_EDITOR, Role.EDITOR),
        **dict.fromkeys(expected.WORKSPACE_ADMIN, Role.ADMIN),
    }
    if name in needed:
        return role.includes(needed[name])
    if name in expected.ANYWHERE_EDITOR:
        return any(one.includes(Role.EDITOR) for one in (caller.cluster, caller.in_alpha))
    if name in expected.LISTS:
        return True
    return name in expected.CLUSTER and caller.cluster.includes(expected.CLUSTER[name])


async def callers(platform: Tenants) -> list[Caller]:
    """One of every kind, all of them real."""
    alpha = platform.alpha
    trial = TrialRun(
        alpha.trial_id, 1, alpha.trial_experiment_id, alpha.allocation_id, "alpha", alpha.workspace_id
    )
    found = [
        Caller("nobody", Anonymous()),
        Caller("trial of alpha", trial),
        *(Caller(f"service {name}", ServiceAccount(name)) for name in ("logs", "preemption")),
    ]
    for role in Role:
        user = await platform.user(f"cluster-{role.value}", cluster=role)
        found.append(Caller(f"cluster {role.value}", user, cluster=role))
    for role in (Role.VIEWER, Role.EDITOR, Role.ADMIN):
        user = await platform.user(f"alpha-{role.value}", roles={alpha.workspace_id: role})
        found.append(Caller(f"{role.value} of alpha", user, in_alpha=role))
    # The owner may do everything, and yet its trials reach one workspace, as an editor does.
    owner = await platform.user("owner", cluster=Role.ADMIN)
    in_alpha = replace(owner, role=Role.EDITOR, workspace_id=alpha.workspace_id)
    found.append(Caller("SDK in a trial of alpha", in_alpha, in_alpha=Role.EDITOR))
    boss = await platform.user("boss", roles={alpha.workspace_id: Role.ADMIN})
    reader = replace(boss, read_only=True)
    found.append(Caller("read-only token of an admin of alpha", reader, in_alpha=Role.VIEWER))
    both = await platform.user("mixed", cluster=Role.VIEWER, roles={alpha.workspace_id: Role.EDITOR})
    found.append(Caller("editor of alpha, cluster viewer", both, cluster=Role.VIEWER, in_alpha=Role.EDITOR))
    return found


def request_for(method: MethodDescriptor, tenant: Tenant) -> Any:
    request = request_of(method, tenant)
    if method.name == "BeginRun":
        request.external_run_id, request.name = str(uuid.uuid4()), "another"
        request.config.CopyFrom(to_value({"workspace": tenant.name, "project": tenant.name}))
    elif method.name == "CheckStorage":
        request.storage.directory.path = "/nonexistent"
    elif "user_id" in request.DESCRIPTOR.fields_by_name and not method.name.startswith("List"):
        request.user_id = 2
    return request


async def outcome(
    channel: grpc.aio.Channel, method: MethodDescriptor, request: Any, token: str
) -> tuple[grpc.StatusCode, str]:
    """Makes a call; a stream counts as let through with its first message."""
    shape = (
        "stream" if method.client_streaming else "unary",
        "stream" if method.server_streaming else "unary",
    )
    call = getattr(channel, "_".join(shape))(
        path(method),
        request_serializer=GetMessageClass(method.input_type).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    metadata = [("authorization", f"Bearer {token}")] if token else []
    sent = iter([request]) if method.client_streaming else request
    running = call(sent, timeout=DEADLINE, metadata=metadata)
    try:
        if method.server_streaming:
            await anext(aiter(running), None)
            running.cancel()
        else:
            await running
    except grpc.aio.AioRpcError as failure:
        return failure.code(), failure.details() or ""
    return grpc.StatusCode.OK, ""


def is_refusal(code: grpc.StatusCode, detail: str) -> bool:
    """Whether a call was refused for who makes it."""
    if code is grpc.StatusCode.NOT_FOUND:
        return "has no role in its workspace" in detail
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        return "there is none; `resolute workspace create` makes one" in detail
    return code in {grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED}


class Matrix:
    """Goes through all cells.

    Args:
        platform: The platform.
    """

    def __init__(self, platform: Tenants) -> None:
        self._platform = platform
        self._lookups = {
            name: service.access_lookup
            for service in platform.running.services
            for name in service.grpc_names
        }
        self.cells = self.calls = 0
        self.wrong: list[str] = []

    async def run(self) -> None:
        """Tries every cell."""
        everybody = await callers(self._platform)
        options = [("grpc.enable_http_proxy", 0)]
        async with grpc.aio.insecure_channel(self._platform.running.address, options=options) as channel:
            for caller in everybody:
                token = self._token(caller.principal)
                for method in methods():
                    for tenant in (self._platform.alpha, self._platform.beta):
                        await self._cell(channel, caller, method, tenant, token)

    async def _cell(
        self, channel: grpc.aio.Channel, caller: Caller, method: MethodDescriptor, tenant: Tenant, token: str
    ) -> None:
        if isinstance(caller.principal, TrialRun) and tenant.name == "alpha":
            return  # What a trial may do with its own is tested elsewhere.
        self.cells += 1
        allowed = is_allowed(method, caller, tenant)
        request = request_for(method, tenant)
        decided = await self._decides(method, caller.principal, request)
        by_handler = method.name in expected.CONFIG_EDITOR or isinstance(caller.principal, TrialRun)
        if decided != allowed and not (decided and by_handler):
            self._note(method, caller, tenant, f"the table says {decided}")
        if allowed and not self._is_harmless(method):
            return
        self.calls += 1
        code, detail = await outcome(channel, method, request, token)
        refused = is_refusal(code, detail)
        if isinstance(caller.principal, TrialRun):
            # Handlers compare what is stored with the token, or find nothing.
            refused = code is not grpc.StatusCode.OK
        if method.name == "ContinueTrial" and code is grpc.StatusCode.FAILED_PRECONDITION:
            return  # Its trial has no checkpoint to continue from, which its viewers may know.
        if refused == allowed and not (refused and method.name in OWN):
            self._note(method, caller, tenant, f"{code.name} {detail}")

    async def _decides(self, method: MethodDescriptor, principal: Principal, request: Any) -> bool:
        lookup = self._lookups[method.containing_service.full_name]
        known = None if method.client_streaming else request
        try:
            await authorize(path(method), principal, known, lookup=lookup)
        except (PermissionDeniedError, NotFoundError):
            return False
        return True

    def _is_harmless(self, method: MethodDescriptor) -> bool:
        reads = method.GetOptions().idempotency_level == 1
        return (reads or method.name in CREATES | {"CheckStorage"}) and method.name not in SILENT

    def _note(self, method: MethodDescriptor, caller: Caller, tenant: Tenant, what: str) -> None:
        self.wrong.append(f"{method.name} by {caller.name} in {tenant.name}: {what}")

    def _token(self, principal: Principal) -> str:
        signer = self._platform.running.signer
        if isinstance(principal, User):
            return signer.user(principal, ttl=3600)
        if isinstance(principal, TrialRun):
            return signer.trial(principal, ttl=3600)
        return signer.service(principal, ttl=3600) if isinstance(principal, ServiceAccount) else ""


def test_every_call_lets_through_whom_it_should(tmp_path: Path) -> None:
    async def scenario() -> Matrix:
        async with tenants(tmp_path) as platform:
            matrix = Matrix(platform)
            await matrix.run()
            return matrix

    matrix = asyncio.run(scenario())
    print(f"access matrix: {matrix.cells} cells, {matrix.calls} of them called")
    assert matrix.wrong == []
    assert matrix.cells > 2000


def test_the_lists_of_this_test_name_every_call_that_users_make() -> None:
    named: Mapping[str, int] = {
        name: 1
        for names in (
            expected.WORKSPACE_VIEWER,
            expected.WORKSPACE_EDITOR,
            expected.WORKSPACE_ADMIN,
            expected.CONFIG_EDITOR,
            expected.LISTS,
            expected.ANYWHERE_EDITOR,
            expected.CLUSTER,
            expected.PUBLIC,
        )
        for name in names
    }
    served = {path(method): method.name for method in methods()}
    for_users = {
        served[call] for call, rule in PERMISSIONS.items() if call in served and (rule.user or rule.public)
    }
    assert set(named) == for_users

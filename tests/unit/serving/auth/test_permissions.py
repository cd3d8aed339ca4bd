"""The permission table: complete, and as strict as it says."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass
from support.calls import contract_methods

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints
from resolute.api.experiments.v1 import allocations_service_pb2 as allocations
from resolute.api.experiments.v1 import experiments_service_pb2 as experiments
from resolute.api.experiments.v1.experiment_pb2 import ExperimentKey
from resolute.api.logs.v1 import logs_service_pb2 as logs
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.errors import PermissionDeniedError
from resolute_serving.auth.authorization import authorize as authorize_call
from resolute_serving.auth.policy.permissions import PERMISSIONS
from resolute_serving.auth.policy.resources import Resource
from resolute_serving.auth.policy.service_accounts import ACCOUNTS, EMBEDDED, may_call
from resolute_serving.context import Anonymous, Principal, Role, ServiceAccount, TrialRun, User

ACCESS = "/resolute.api.experiments.v1.AccessService"
PUBLIC = {"GetVerificationKeys", "GetSignInMethods", "Login", "LoginWithIdToken", "RedeemSignInCode"}
READING = (
    "Get",
    "List",
    "Watch",
    "Follow",
    "Validate",
    "Preview",
    "Replay",
    "Presign",
    "Read",
    "Hold",
    "Simulate",
)
"""How the names of calls begin that change nothing."""
TRIAL = TrialRun(trial_id="t", run=2, experiment_id="e", allocation_id="t.2", workspace="w")


REQUESTS = {
    contract_methods.path(method): GetMessageClass(method.input_type) for method in contract_methods.methods()
}
METHODS = sorted(REQUESTS)


def authorize(method: str, principal: Principal, request: Any) -> None:
    """As where nobody has roles but in the cluster."""
    asyncio.run(authorize_call(method, principal, request))


def allowed(method: str, principal: Principal, request: Any) -> bool:
    try:
        authorize(method, principal, request)
    except PermissionDeniedError:
        return False
    return True


def test_every_method_of_the_contract_has_an_entry_and_every_entry_a_method() -> None:
    assert len(METHODS) > 50
    ours = {method for method in PERMISSIONS if method.startswith("/resolute.")}
    assert ours == set(METHODS)


def test_method_without_an_entry_may_be_called_by_nobody() -> None:
    with pytest.raises(PermissionDeniedError, match="no entry in the permission table"):
        authorize("/resolute.api.x.v1.X/Y", User("root", Role.ADMIN), None)


@pytest.mark.parametrize("method", METHODS)
def test_without_a_token_only_keys_can_be_fetched_and_passwords_given(method: str) -> None:
    name = method.rsplit("/", 1)[1]
    assert allowed(method, Anonymous(), REQUESTS[method]()) is (name in PUBLIC)


@pytest.mark.parametrize("method", METHODS)
def test_a_higher_role_may_do_all_that_a_lower_one_may(method: str) -> None:
    request = REQUESTS[method]()
    decisions = [allowed(method, User("u", role), request) for role in Role]
    assert decisions == sorted(decisions)


@pytest.mark.parametrize("method", METHODS)
def test_viewers_change_nothing(method: str) -> None:
    of_their_own = (
        "Login",
        "RedeemSignInCode",
        "SetPassword",
        "CreateToken",
        "CreateSignInCode",
        "UpdateToken",
        "RevokeToken",
        "UpdateUserSettings",
    )
    if allowed(method, User("v", Role.VIEWER), REQUESTS[method]()):
        assert method.rsplit("/", 1)[1].startswith((*READING, *of_their_own))


@pytest.mark.parametrize("method", METHODS)
def test_a_read_only_token_makes_the_calls_of_a_viewer_but_none_about_the_account(method: str) -> None:
    rule, request = PERMISSIONS[method], REQUESTS[method]()
    by_viewer = allowed(method, User("v", Role.VIEWER), request)
    for role in (Role.VIEWER, Role.EDITOR, Role.ADMIN):
        reads = allowed(method, User("u", role, read_only=True), request)
        assert reads is (by_viewer and not rule.personal)
    if not rule.public and by_viewer and not rule.personal:
        assert method.rsplit("/", 1)[1].startswith(READING)


@pytest.mark.parametrize("method", METHODS)
def test_a_role_in_a_workspace_gives_a_read_only_token_no_more(method: str) -> None:
    class Everywhere:
        async def roles(self, user: User) -> dict[int, Role]:
            return {1: Role.ADMIN}

        async def workspaces(self, resources: Collection[Resource]) -> dict[Resource, int]:
            return dict.fromkeys(resources, 1)

    request = REQUESTS[method]()
    reader = User("u", Role.MEMBER, user_id=1, read_only=True)
    if PERMISSIONS[method].public:
        return
    try:
        grants = asyncio.run(authorize_call(method, reader, request, lookup=Everywhere()))
    except PermissionDeniedError:
        return
    assert method.rsplit("/", 1)[1].startswith(READING)
    assert not grants.anywhere(Role.EDITOR)


@pytest.mark.parametrize("method", METHODS)
def test_foreign_trial_reaches_nothing_of_others(method: str) -> None:
    """A request that names another trial, experiment and allocation is refused wherever the table decides."""
    request: Any = REQUESTS[method]()
    for field in ("trial_id", "experiment_id", "allocation_id"):
        if field in request.DESCRIPTOR.fields_by_name:
            setattr(request, field, "foreign")
    named = request.DESCRIPTOR.fields_by_name.get("filter")
    if named is not None and named.message_type is not None:
        request.filter.trial_id = "foreign"
    decision = allowed(method, TRIAL, request)
    decided_by_handler = {
        "PresignUploads",
        "ReuseFiles",
        "CommitCheckpoint",
        "CommitCheckpointInChunks",
        "ListFiles",
        "AbortCheckpoint",
        "GetCheckpoint",
        "PresignDownloads",
        "ReadFile",
        "HoldCheckpoint",
        "UpdateMetadata",
        "DeleteCheckpoints",
        "DeleteFiles",
    }
    name = method.rsplit("/", 1)[1]
    assert decision is (name in decided_by_handler or name in PUBLIC)


@pytest.mark.parametrize(
    ("method", "request_"),
    [
        ("searcher.v1.SearcherService/GetOperation", searcher.GetOperationRequest(trial_id="t", run=2)),
        (
            "metrics.v1.MetricsService/IngestReports",
            metrics.IngestReportsRequest(trial_id="t", run=1, experiment_id="e"),
        ),
        ("logs.v1.LogsService/IngestLines", logs.IngestLinesRequest(trial_id="t", run=2, experiment_id="e")),
        (
            "checkpoints.v1.CheckpointsService/BeginCheckpoint",
            checkpoints.BeginCheckpointRequest(trial_id="t", run=2, experiment_id="e"),
        ),
        (
            "experiments.v1.AllocationsService/RenewLease",
            allocations.RenewLeaseRequest(allocation_id="t.2"),
        ),
        (
            "experiments.v1.ExperimentsService/GetModelDefinition",
            experiments.GetModelDefinitionRequest(experiment=ExperimentKey(experiment_id="e")),
        ),
    ],
)
def test_trial_reaches_what_is_its_own(method: str, request_: Any) -> None:
    assert allowed(f"/resolute.api.{method}", TRIAL, request_)


def test_token_of_a_run_does_not_speak_for_a_later_run() -> None:
    method = "/resolute.api.searcher.v1.SearcherService/CompleteOperation"
    assert allowed(method, TRIAL, searcher.CompleteOperationRequest(trial_id="t", run=2))
    assert not allowed(method, TRIAL, searcher.CompleteOperationRequest(trial_id="t", run=3))


def test_services_may_fence_trials_and_users_may_not() -> None:
    method = "/resolute.api.searcher.v1.SearcherService/FenceTrial"
    assert allowed(method, ServiceAccount("experiments"), searcher.FenceTrialRequest())
    with pytest.raises(PermissionDeniedError, match="not for users"):
        authorize(method, User("a", Role.ADMIN), searcher.FenceTrialRequest())


def test_service_accounts_may_make_exactly_the_calls_of_their_services() -> None:
    made = {account: {method for method in METHODS if may_call(account, method)} for account in ACCOUNTS}
    assert made == {account: calls_in_source(account) for account in ACCOUNTS}
    assert {method for method in METHODS if may_call(EMBEDDED, method)} == set().union(*made.values())


@pytest.mark.parametrize("account", [*ACCOUNTS, EMBEDDED, "nobody"])
def test_service_accounts_issue_no_tokens_of_users(account: str) -> None:
    for name in ("CreateToken", "CreateUser", "SetPassword", "UpdateUser"):
        with pytest.raises(PermissionDeniedError, match=f"not among the calls that the {account} service"):
            authorize(f"{ACCESS}/{name}", ServiceAccount(account), REQUESTS[f"{ACCESS}/{name}"]())


def calls_in_source(account: str) -> set[str]:
    """The RPCs that the source code of a service calls, by the names of stubs."""
    package = importlib.import_module(f"resolute_{account}")
    text = "\n".join(path.read_text() for path in Path(package.__path__[0]).rglob("*.py"))
    names = {
        "roles": "experiments.v1.RolesService",
        "searcher": "searcher.v1.SearcherService",
        "metrics": "metrics.v1.MetricsService",
        "logs": "logs.v1.LogsService",
        "checkpoints": "checkpoints.v1.CheckpointsService",
        "stub": "experiments.v1.AllocationsService",
    }
    calls = re.findall(rf"\b({'|'.join(names)})\.([A-Z][A-Za-z]+)\(", text)
    if "environment.access_lookup" in text:
        # The server kit asks for the roles of users on behalf of every service but experiments.
        calls += [("roles", "ListRoles"), ("roles", "FindWorkspaces")]
    common = {f"{ACCESS}/{method}" for method in ("RenewServiceToken", "RecordRefusals")}
    return common | {f"/resolute.api.{names[stub]}/{method}" for stub, method in calls}

"""Every call of every service, made for real by every kind of caller: the table decides who gets through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass
from support.clusters.embedded import EmbeddedCluster
from support.contract_methods import methods, path

from resolute.client.connection.home import Home
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import PermissionDeniedError
from resolute_embedded.state_directory import StateDirectory
from resolute_serving.auth.permissions import PERMISSIONS, authorize
from resolute_serving.auth.tokens import TokenSigner, load_or_create_key
from resolute_serving.context import Anonymous, Principal, Role, ServiceAccount, TrialRun, User

DEADLINE = 3.0
FOREIGN = TrialRun(trial_id="mine", run=1, experiment_id="mine", allocation_id="mine.1", workspace="mine")
REFUSED_BY_HANDLER = {"Login", "SetPassword", "CreateToken", "ListTokens", "RevokeToken"}
"""What names no user, or another than the caller."""
CALLERS: dict[str, Principal] = {
    "nobody": Anonymous(),
    "viewer": User("vic", Role.VIEWER),
    "editor": User("ed", Role.EDITOR),
    "admin": User("ada", Role.ADMIN),
    "foreign trial": FOREIGN,
    "service": ServiceAccount("experiments"),
}


def request_of(method: MethodDescriptor) -> Any:
    """A request that names a trial, an experiment and an allocation that are not the caller's."""
    request: Any = GetMessageClass(method.input_type)()
    for field in ("trial_id", "experiment_id", "allocation_id"):
        if field in request.DESCRIPTOR.fields_by_name:
            setattr(request, field, "of-somebody-else")
    if "checkpoint_ids" in request.DESCRIPTOR.fields_by_name:
        request.checkpoint_ids.append("of-somebody-else")
    return request


def expected(method: MethodDescriptor, caller: Principal) -> bool:
    try:
        authorize(path(method), caller, None if method.client_streaming else request_of(method))
    except PermissionDeniedError:
        return False
    return True


@pytest.fixture(scope="module")
def tokens(shared_cluster: EmbeddedCluster) -> dict[str, str]:
    """A token of every kind of caller; none for nobody."""
    state = StateDirectory(Home(shared_cluster.home))
    key = load_or_create_key(state.data / "signing-key.pem")
    signer = TokenSigner(key, cluster_id=state.cluster_id(), clock=SYSTEM_CLOCK)

    def token(caller: Principal) -> str:
        if isinstance(caller, User):
            return signer.user(caller, ttl=600)
        if isinstance(caller, TrialRun):
            return signer.trial(caller, ttl=600)
        return signer.service(caller, ttl=600) if isinstance(caller, ServiceAccount) else ""

    return {name: token(caller) for name, caller in CALLERS.items()}


@pytest.fixture(scope="module")
def channel(shared_cluster: EmbeddedCluster) -> Iterator[grpc.Channel]:
    local = Home(shared_cluster.home).read_endpoint()
    assert local is not None
    with grpc.insecure_channel(local.address, options=[("grpc.enable_http_proxy", 0)]) as opened:
        yield opened


def outcome(channel: grpc.Channel, method: MethodDescriptor, token: str) -> grpc.StatusCode:
    """Makes the call and returns how it ended; a stream counts as let through with its first message."""
    serialize = GetMessageClass(method.input_type).SerializeToString
    metadata = [("authorization", f"Bearer {token}")] if token else []
    request = request_of(method)
    shape = (
        "stream" if method.client_streaming else "unary",
        "stream" if method.server_streaming else "unary",
    )
    call = getattr(channel, "_".join(shape))(path(method), request_serializer=serialize)
    sent = iter([request]) if method.client_streaming else request
    try:
        answer = call(sent, timeout=DEADLINE, metadata=metadata)
        if method.server_streaming:
            next(answer, None)
            answer.cancel()
    except grpc.RpcError as failure:
        return failure.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("name", list(CALLERS))
def test_every_call_lets_through_whom_the_table_names(
    channel: grpc.Channel, tokens: dict[str, str], name: str
) -> None:
    caller = CALLERS[name]
    refusal = (
        grpc.StatusCode.UNAUTHENTICATED
        if isinstance(caller, Anonymous)
        else grpc.StatusCode.PERMISSION_DENIED
    )
    wrong = []
    for method in methods():
        if method.server_streaming and expected(method, caller):
            # Some wait for news until the deadline; that they get as far is what the refusals of others show.
            continue
        code = outcome(channel, method, tokens[name])
        refused = code in {grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED}
        if not expected(method, caller):
            fine = code is refusal
        elif isinstance(caller, TrialRun):
            # The table leaves it to the handler to compare what is stored with the token.
            fine = code is not grpc.StatusCode.OK or method.name == "GetVerificationKeys"
        else:
            fine = not refused or method.name in REFUSED_BY_HANDLER
        if not fine:
            wrong.append(f"{path(method)}: {code.name}")
    assert wrong == []
    assert len(PERMISSIONS) > 60

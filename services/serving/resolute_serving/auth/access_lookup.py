"""Looks up the roles of users and the workspaces of objects. Other services ask the experiments service."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast

from resolute.api.experiments.v1 import roles_service_pb2, user_pb2
from resolute.api.experiments.v1.roles_service_pb2_grpc import RolesServiceStub
from resolute.contracts.clock import Clock
from resolute.errors import ResoluteError, UnavailableError
from resolute_serving.auth.policy.resources import Kind, Resource
from resolute_serving.context import Role, User

if TYPE_CHECKING:
    import grpc

    from resolute.api.experiments.v1.roles_service_pb2_grpc import RolesServiceAsyncStub

_REMEMBERED = 10_000
"""Answers of each kind that are kept in memory."""
_PAGE = 1000
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

ROLES: Mapping[int, Role] = {
    user_pb2.USER_ROLE_MEMBER: Role.MEMBER,
    user_pb2.USER_ROLE_VIEWER: Role.VIEWER,
    user_pb2.USER_ROLE_EDITOR: Role.EDITOR,
    user_pb2.USER_ROLE_ADMIN: Role.ADMIN,
}
"""Roles by their numbers in the contract."""


class AccessLookup(Protocol):
    """Looks up the data that decide whether a user may make a call."""

    async def roles(self, user: User) -> Mapping[int, Role]:
        """The roles of a user in single workspaces, by their ids."""

    async def workspaces(self, resources: Collection[Resource]) -> Mapping[Resource, int]:
        """The ids of the workspaces that objects belong to; what does not exist is left out."""


class RemoteAccessLookup:
    """Asks the experiments service, and caches its answers for a short time.

    Unknown objects are not cached, because they may be created at any time.

    Args:
        channel: Opens the channel to the experiments service, or returns the open one.
        clock: Clock for the age of an answer.
        seconds: Seconds for which an answer is cached. A removed role stays in effect for that time.
    """

    def __init__(self, channel: Callable[[], grpc.aio.Channel], *, clock: Clock, seconds: float) -> None:
        self._channel = channel
        self._roles: _Recent[int, Mapping[int, Role]] = _Recent(clock, seconds)
        self._workspaces: _Recent[Resource, int] = _Recent(clock, seconds)

    async def roles(self, user: User) -> Mapping[int, Role]:
        """The roles of a user in single workspaces, by their ids.

        Raises:
            UnavailableError: The experiments service does not answer, and no recent answer is known.
        """
        if not user.user_id:
            # A token from before users had ids; roles in workspaces came later.
            return {}
        known = self._roles.get(user.user_id)
        if known is None:
            known = await self._fetch_roles(user.user_id)
            self._roles.put(user.user_id, known)
        return known

    async def workspaces(self, resources: Collection[Resource]) -> Mapping[Resource, int]:
        """The ids of the workspaces that experiments, trials, allocations and workspaces belong to.

        Raises:
            UnavailableError: The experiments service does not answer, and no recent answer is known.
        """
        located: dict[Resource, int] = {}
        missing: dict[Kind, list[Resource]] = {}
        for resource in resources:
            if resource.kind is Kind.WORKSPACE:
                located[resource] = int(resource.key)
            elif (known := self._workspaces.get(resource)) is not None:
                located[resource] = known
            else:
                missing.setdefault(resource.kind, []).append(resource)
        if missing:
            located.update(await self._fetch_workspaces(missing))
        return located

    @property
    def _stub(self) -> RolesServiceAsyncStub:
        return cast("RolesServiceAsyncStub", RolesServiceStub(self._channel()))

    async def _fetch_roles(self, user_id: int) -> Mapping[int, Role]:
        roles: dict[int, Role] = {}
        request = roles_service_pb2.ListRolesRequest(user_ids=[user_id], page_size=_PAGE)
        while True:
            response = await _answer(self._stub.ListRoles(request))
            # A role that this version does not know allows nothing.
            roles.update((role.workspace_id, ROLES.get(role.role, Role.MEMBER)) for role in response.roles)
            if not response.next_page_token:
                return roles
            request.page_token = response.next_page_token

    async def _fetch_workspaces(self, missing: Mapping[Kind, list[Resource]]) -> Mapping[Resource, int]:
        def keys(kind: Kind) -> list[str]:
            return [resource.key for resource in missing.get(kind, ())]

        request = roles_service_pb2.FindWorkspacesRequest(
            experiment_ids=keys(Kind.EXPERIMENT),
            trial_ids=keys(Kind.TRIAL),
            allocation_ids=keys(Kind.ALLOCATION),
        )
        response = await _answer(self._stub.FindWorkspaces(request))
        located: dict[Resource, int] = {}
        for kind, answers in (
            (Kind.EXPERIMENT, response.experiments),
            (Kind.TRIAL, response.trials),
            (Kind.ALLOCATION, response.allocations),
        ):
            for key, workspace_id in answers.items():
                resource = Resource(kind, key)
                self._workspaces.put(resource, workspace_id)
                located[resource] = workspace_id
        return located


async def _answer(call: Awaitable[V]) -> V:
    """Waits for an answer; that there is none is not for the caller to mend, whatever the reason."""
    try:
        return await call
    except ResoluteError as error:
        raise UnavailableError(
            f"the experiments service does not return the roles of users: {error}; try again later"
        ) from error


class _Recent(Generic[K, V]):
    """A cache of recent answers. If there are too many, the oldest are removed first."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        known = self._answers.get(key)
        if known is None or self._clock.monotonic() - known[0] >= self._seconds:
            return None
        return known[1]

    def put(self, key: K, value: V) -> None:
        self._answers[key] = (self._clock.monotonic(), value)
        self._answers.move_to_end(key)
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)

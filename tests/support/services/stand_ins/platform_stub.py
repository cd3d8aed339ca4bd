"""A stub for tests that play the experiments service, and look on or speak for trials besides."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from resolute_serving.auth.policy.permissions import PERMISSIONS
from resolute_serving.auth.policy.service_accounts import may_call
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import Role, ServiceAccount, TrialRun, User
from resolute_serving.server.channels.peers import Peers

_TOKEN_SECONDS = 3600.0


class PlatformStub:
    """Makes each call with the token that may: the experiments service's, the trial's, or an admin's.

    Args:
        make: The generated class of the stub.
        signer: Issues the tokens.
        address: ``host:port`` of the service.
    """

    def __init__(self, make: Callable[[Any], Any], *, signer: TokenSigner, address: str) -> None:
        self._signer = signer
        self._tokens: dict[object, str] = {}
        self._token: ContextVar[str] = ContextVar("token")
        self.peers = Peers({"*": address}, token=self._token.get)
        self._stub = make(self.peers.channel("*"))
        noun = make.__name__.removesuffix("ServiceStub")
        self._prefix = f"/resolute.api.{noun.lower()}.v1.{noun}Service/"

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._stub, name)

        def with_token(request: Any, **options: Any) -> Any:
            # The call's own task has a copy of this context.
            previous = self._token.set(self._token_for(self._prefix + name, request))
            try:
                return call(request, **options)
            finally:
                self._token.reset(previous)

        return with_token

    def _token_for(self, method: str, request: Any) -> str:
        caller: ServiceAccount | TrialRun | User = User("ada", Role.ADMIN)
        if may_call("experiments", method):
            caller = ServiceAccount("experiments")
        elif not PERMISSIONS[method].user:
            caller = TrialRun(request.trial_id, request.run, "experiment", "allocation", "workspace")
        if caller not in self._tokens:
            self._tokens[caller] = self._signed(caller)
        return self._tokens[caller]

    def _signed(self, caller: ServiceAccount | TrialRun | User) -> str:
        if isinstance(caller, User):
            return self._signer.user(caller, ttl=_TOKEN_SECONDS)
        if isinstance(caller, TrialRun):
            return self._signer.trial(caller, ttl=_TOKEN_SECONDS)
        return self._signer.service(caller, ttl=_TOKEN_SECONDS)

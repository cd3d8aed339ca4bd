"""Handlers of SecretsService."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import secrets_service_pb2 as pb2
from resolute.api.experiments.v1.secrets_service_pb2_grpc import SecretsServiceServicer
from resolute.contracts.times import to_timestamp
from resolute.errors import PermissionDeniedError, RunSupersededError
from resolute_experiments.accounts.secrets import Secrets
from resolute_experiments.accounts.store import secrets, users, workspaces
from resolute_experiments.accounts.store.secrets import Holder, Secret
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import audit, experiments, runs, trials
from resolute_serving.context import User, current_principal


class SecretsServicer(SecretsServiceServicer):
    """The handlers of secrets, which scripts can read and users cannot.

    Args:
        core: The context that all handlers share.
        kept: Encrypts and decrypts secrets.
    """

    def __init__(self, core: ServiceContext, kept: Secrets) -> None:
        self._core = core
        self._kept = kept

    async def SetSecret(self, request: pb2.SetSecretRequest, context: Any) -> pb2.SetSecretResponse:
        """Sets a secret in place of the one of its name."""
        now = self._core.clock.time()

        def work(connection: Connection) -> Secret:
            holder, label = _holder(connection, request.workspace_id)
            secret = self._kept.put(connection, holder, request.name, request.value, now=now)
            audit.record(connection, "set_secret", f"secret {request.name} of {label}", now=now)
            return secret

        return pb2.SetSecretResponse(secret=_message(await self._core.database.write(work)))

    async def ListSecrets(self, request: pb2.ListSecretsRequest, context: Any) -> pb2.ListSecretsResponse:
        """Returns the names of secrets."""

        def work(connection: Connection) -> list[Secret]:
            holder, _ = _holder(connection, request.workspace_id)
            return list(secrets.of_holder(connection, holder).values())

        found = await self._core.database.read(work)
        return pb2.ListSecretsResponse(secrets=[_message(secret) for secret in found])

    async def DeleteSecret(self, request: pb2.DeleteSecretRequest, context: Any) -> pb2.DeleteSecretResponse:
        """Deletes a secret."""
        now = self._core.clock.time()

        def work(connection: Connection) -> None:
            holder, label = _holder(connection, request.workspace_id)
            secrets.delete(connection, holder, request.name)
            audit.record(connection, "delete_secret", f"secret {request.name} of {label}", now=now)

        await self._core.database.write(work)
        return pb2.DeleteSecretResponse()

    async def GetRunSecrets(
        self, request: pb2.GetRunSecretsRequest, context: Any
    ) -> pb2.GetRunSecretsResponse:
        """Gives a run what its config names."""

        def work(connection: Connection) -> dict[str, str]:
            run = runs.get(connection, request.allocation_id)
            trial = trials.get(connection, trial_id=run.trial_id)
            experiment = experiments.get(connection, experiment_id=run.experiment_id)
            if run.ended or run.run != trial.run:
                raise RunSupersededError(
                    f"run {run.run} of {trial.label} is over; it is given no secrets any more",
                    resource=trial.label,
                )
            if experiment.unmanaged:
                raise PermissionDeniedError(
                    f"{experiment.label} runs outside of the cluster, which gives secrets to runs of its own",
                    resource=experiment.label,
                )
            return self._kept.of_run(connection, experiment)

        return pb2.GetRunSecretsResponse(values=await self._core.database.read(work))


def _holder(connection: Connection, workspace_number: int) -> tuple[Holder, str]:
    """Whose secrets a request is about, and how the audit log names them."""
    if workspace_number:
        workspace = workspaces.get(connection, number=workspace_number)
        return Holder(workspace_number=workspace.number), f"workspace {workspace.name}"
    principal = current_principal.get()
    if not isinstance(principal, User):
        raise PermissionDeniedError("only users have secrets; call with the token of a user")
    account = users.get(connection, name=principal.name)
    return Holder(user_number=account.number), f"user {account.name}"


def _message(secret: Secret) -> pb2.Secret:
    return pb2.Secret(
        name=secret.name,
        create_time=to_timestamp(secret.created_at),
        update_time=to_timestamp(secret.updated_at),
    )

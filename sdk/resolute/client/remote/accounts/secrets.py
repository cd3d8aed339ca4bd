"""Secrets for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resolute.api.experiments.v1 import secrets_service_pb2 as _pb
from resolute.api.experiments.v1 import secrets_service_pb2_grpc
from resolute.client.connection.session import Session
from resolute.client.schema.records import SecretRecord
from resolute.contracts.messages import from_message

if TYPE_CHECKING:
    from resolute.client.remote.accounts.workspaces import Workspaces


class Secrets:
    """Calls of the secrets service. A workspace is named by name or number; None is the caller.

    Args:
        session: The connection.
        workspaces: Calls that look up workspaces by name.
    """

    def __init__(self, session: Session, workspaces: Workspaces) -> None:
        self._stub = session.stub(secrets_service_pb2_grpc.SecretsServiceStub)
        self._workspaces = workspaces

    def set(self, name: str, value: str, *, workspace: str | int | None = None) -> SecretRecord:
        """Sets a secret in place of one of the same name.

        Args:
            name: Its name.
            value: 8 characters to 32 KiB of text.
            workspace: Whose it is.

        Raises:
            InvalidArgumentError: The name or the value cannot be one, or there are too many.
            PermissionDeniedError: The caller is no admin of the workspace.
        """
        request = _pb.SetSecretRequest(workspace_id=self._workspaces.id_of(workspace), name=name, value=value)
        return from_message(SecretRecord, self._stub.SetSecret(request).secret)

    def list(self, *, workspace: str | int | None = None) -> list[SecretRecord]:
        """Returns secrets without their values, by name."""
        found = self._stub.ListSecrets(
            _pb.ListSecretsRequest(workspace_id=self._workspaces.id_of(workspace))
        ).secrets
        return [from_message(SecretRecord, secret) for secret in found]

    def delete(self, name: str, *, workspace: str | int | None = None) -> None:
        """Deletes a secret.

        Raises:
            NotFoundError: There is none of the name.
            PermissionDeniedError: The caller is no admin of the workspace.
        """
        self._stub.DeleteSecret(
            _pb.DeleteSecretRequest(workspace_id=self._workspaces.id_of(workspace), name=name)
        )

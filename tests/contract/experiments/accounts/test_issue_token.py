"""Tokens that a command issued before the cluster ran are tokens like all others."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from support.services.access import calls
from support.services.in_process import serving

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.api.experiments.v1 import token_pb2
from resolute.errors import FailedPreconditionError, UnauthenticatedError
from resolute_experiments.blueprint import BLUEPRINT
from resolute_experiments.issue_token import OPERATOR, issue
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import current_principal
from resolute_serving.database import migrations
from resolute_serving.database.engine import create_engine
from resolute_serving.server.settings import Settings


def settings_of(data: Path, database_url: str) -> Settings:
    variables = {
        "RESOLUTE_CLUSTER_ID": str(uuid.uuid5(uuid.NAMESPACE_URL, "resolute:test")),
        "RESOLUTE_DATABASE_URL": database_url,
        "RESOLUTE_DATA_DIR": str(data),
    }
    return Settings.from_environment(variables, service="experiments")


def test_tokens_issued_before_the_first_start_are_listed_renewed_and_revoked(
    tmp_path: Path, database_url: str
) -> None:
    data = tmp_path / "data" / "experiments"
    settings = settings_of(data, database_url)

    async def scenario() -> None:
        operator = await asyncio.to_thread(issue, settings, OPERATOR, days=None)
        service = await asyncio.to_thread(issue, settings, "logs", days=1)
        key = load_or_create_key(data / "signing-key.pem")
        async with serving([BLUEPRINT], tmp_path, database_url=database_url, key=key) as running:
            # A cluster that runs takes more of them.
            later = await asyncio.to_thread(issue, settings, OPERATOR, days=1)
            async with calls(running, operator) as admin, calls(running, service) as logs:
                listed = (await admin.access.ListTokens(pb2.ListTokensRequest())).tokens
                assert [(token.kind, token.user_name or token.service_name) for token in listed] == [
                    (token_pb2.TOKEN_KIND_OPERATOR, "admin"),
                    (token_pb2.TOKEN_KIND_SERVICE, "logs"),
                    (token_pb2.TOKEN_KIND_OPERATOR, "admin"),
                ]
                renewed = await logs.access.RenewServiceToken(pb2.RenewServiceTokenRequest())
                assert renewed.token.token_id == listed[1].token_id
                await admin.access.RevokeToken(pb2.RevokeTokenRequest(token_id=listed[1].token_id))
                with pytest.raises(UnauthenticatedError, match="revoked"):
                    await logs.access.RenewServiceToken(pb2.RenewServiceTokenRequest())
                own = await admin.access.CreateToken(pb2.CreateTokenRequest())
                assert own.token.parent_token_id == listed[2].token_id
                async with calls(running, later) as other:
                    await other.access.RevokeToken(pb2.RevokeTokenRequest(token_id=listed[2].token_id))
                    assert (await other.access.GetCurrentUser(pb2.GetCurrentUserRequest())).user.user_id == 1
                with pytest.raises(UnauthenticatedError, match="revoked"):
                    await admin.access.GetCurrentUser(pb2.GetCurrentUserRequest())

    asyncio.run(scenario())


def test_who_issues_a_token_is_nobody_else_afterwards(tmp_path: Path, database_url: str) -> None:
    before = current_principal.get()
    issue(settings_of(tmp_path / "data", database_url), OPERATOR, days=None)
    assert current_principal.get() is before


def test_no_token_is_issued_with_the_database_of_another_version(tmp_path: Path, database_url: str) -> None:
    engine = create_engine(database_url, name="experiments", writes=True)
    migrations.upgrade(engine, package=BLUEPRINT.package, schema="experiments", revision="+1")
    engine.dispose()
    with pytest.raises(FailedPreconditionError, match="db upgrade"):
        issue(settings_of(tmp_path, database_url), OPERATOR, days=None)

"""A client shows what a newer server sends, also values that it is too old to know."""

from __future__ import annotations

from typing import cast

from resolute.api.experiments.v1 import token_pb2, user_pb2
from resolute.client.remote.accounts.access import _token, _user
from resolute.client.schema.accounts import UserRole


def test_a_role_that_a_newer_server_added_is_shown_as_unspecified() -> None:
    role = cast("user_pb2.UserRole.ValueType", 99)
    assert _user(user_pb2.User(name="ada", role=role)).role is UserRole.UNSPECIFIED


def test_tokens_tell_their_kind_their_parent_and_their_service() -> None:
    message = token_pb2.Token(kind=token_pb2.TOKEN_KIND_SIGN_IN, parent_token_id="p", service_name="logs")
    token = _token(message)
    assert (token.kind, token.parent_id, token.service) == ("sign-in", "p", "logs")
    newer = token_pb2.Token(kind=cast("token_pb2.TokenKind.ValueType", 99))
    assert _token(newer).kind == "unknown"

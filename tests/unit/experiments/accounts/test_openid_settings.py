"""Settings of the OpenID provider."""

from __future__ import annotations

import pytest

from resolute.errors import InvalidArgumentError
from resolute_experiments.accounts.openid.settings import GroupRole, OpenIdSettings
from resolute_serving.context import Role

GIVEN = {
    "RESOLUTE_OPENID_ISSUER": "https://id.example/realm",
    "RESOLUTE_OPENID_CLIENT_ID": "resolute",
    "RESOLUTE_OPENID_ROLES": "staff=member, a=b=vision:editor,",
}


def test_groups_have_roles_in_the_cluster_or_in_a_workspace() -> None:
    settings = OpenIdSettings.from_environment(GIVEN)
    assert settings is not None
    assert settings.roles == (
        GroupRole("staff", Role.MEMBER, workspace=""),
        GroupRole("a=b", Role.EDITOR, workspace="vision"),
    )
    assert (settings.scopes, settings.groups_claim) == (("openid", "profile", "groups"), "groups")
    assert OpenIdSettings.from_environment({}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RESOLUTE_OPENID_ISSUER", "http://id.example"),
        ("RESOLUTE_OPENID_ISSUER", "file:///etc/passwd"),
        ("RESOLUTE_OPENID_CLIENT_ID", ""),
        ("RESOLUTE_OPENID_ROLES", ""),
        ("RESOLUTE_OPENID_ROLES", "staff=owner"),
        ("RESOLUTE_OPENID_ROLES", "staff=vision:member"),
        ("RESOLUTE_OPENID_ROLES", "=viewer"),
        ("RESOLUTE_OPENID_ISSUER", "https://[x"),
        ("RESOLUTE_OPENID_SCOPES", "profile groups"),
    ],
)
def test_wrong_settings_are_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        OpenIdSettings.from_environment({**GIVEN, name: value})

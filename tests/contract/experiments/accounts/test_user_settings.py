"""Settings of users, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.errors import InvalidArgumentError

Play = Callable[[Scenario], None]


async def update(of: Calls, **settings: str) -> dict[str, str]:
    response = await of.access.UpdateUserSettings(pb2.UpdateUserSettingsRequest(settings=settings))
    return dict(response.settings)


async def read(of: Calls) -> dict[str, str]:
    return dict((await of.access.GetUserSettings(pb2.GetUserSettingsRequest())).settings)


async def token_of(admin: Calls, name: str) -> str:
    user = await admin.user(name)
    issued = await admin.access.CreateToken(pb2.CreateTokenRequest(user_id=user.user_id))
    return str(issued.bearer_token)


def test_each_user_has_settings_of_their_own_and_those_that_are_not_named_stay(play: Play) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        async with (
            calls(running, await token_of(admin, "ada")) as ada,
            calls(running, await token_of(admin, "bob")) as bob,
        ):
            assert await read(ada) == {}
            assert await update(ada, columns="state,best", theme="dark") == {
                "columns": "state,best",
                "theme": "dark",
            }
            assert await update(bob, columns="name") == {"columns": "name"}
            assert await update(ada, columns="", theme="light") == {"theme": "light"}
            assert await update(ada) == {"theme": "light"}
            assert await read(ada) == {"theme": "light"}
            assert await read(bob) == {"columns": "name"}

    play(scenario)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"a b": "x"}, "not a name of a setting"),
        ({"n" * 65: "x"}, "not a name of a setting"),
        ({"columns": "x" * 4097}, "at most 4096"),
        ({f"s{number}": "x" for number in range(101)}, "at most 100 settings"),
    ],
)
def test_settings_are_bounded(play: Play, settings: dict[str, str], message: str) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        async with calls(running, await token_of(admin, "ada")) as ada:
            with pytest.raises(InvalidArgumentError, match=message):
                await update(ada, **settings)
            assert await read(ada) == {}

    play(scenario)

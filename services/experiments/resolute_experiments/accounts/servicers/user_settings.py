"""Handlers of the calls about settings of users."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import access_service_pb2 as pb2
from resolute.errors import PermissionDeniedError
from resolute_experiments.accounts.store import user_settings, users
from resolute_experiments.context import ServiceContext
from resolute_serving.context import User, current_principal
from resolute_serving.validation import invalid

_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_MAX_CHARACTERS = 4096
_MAX_SETTINGS = 100


class SettingHandlers:
    """The settings of users for client programs. Users can access only their own settings.

    Args:
        core: The context that all handlers share.
    """

    def __init__(self, core: ServiceContext) -> None:
        self._core = core

    async def GetUserSettings(
        self, request: pb2.GetUserSettingsRequest, context: Any
    ) -> pb2.GetUserSettingsResponse:
        """Returns the settings of the caller."""
        name = _caller()

        def work(connection: Connection) -> dict[str, str]:
            account = users.find(connection, name)
            return user_settings.of_user(connection, account.number) if account else {}

        return pb2.GetUserSettingsResponse(settings=await self._core.database.read(work))

    async def UpdateUserSettings(
        self, request: pb2.UpdateUserSettingsRequest, context: Any
    ) -> pb2.UpdateUserSettingsResponse:
        """Sets some settings of the caller."""
        name, changes = _caller(), dict(request.settings)
        _check(changes)

        def work(connection: Connection) -> dict[str, str]:
            number = users.get(connection, name=name).number
            user_settings.put(connection, number, changes)
            after = user_settings.of_user(connection, number)
            if len(after) > _MAX_SETTINGS:
                raise invalid(
                    "settings", f"a user has at most {_MAX_SETTINGS} settings; remove some by empty values"
                )
            return after

        return pb2.UpdateUserSettingsResponse(settings=await self._core.database.write(work))


def _caller() -> str:
    principal = current_principal.get()
    if not isinstance(principal, User):
        raise PermissionDeniedError("only users have settings; call with the token of a user")
    return principal.name


def _check(changes: Mapping[str, str]) -> None:
    for name, value in changes.items():
        if not _NAME.fullmatch(name):
            raise invalid(
                "settings", f"{name[:80]!r} is not a name of a setting: 1 to 64 letters, digits and . _ -"
            )
        if len(value) > _MAX_CHARACTERS:
            raise invalid(
                "settings", f"{name} has {len(value)} characters; a setting has at most {_MAX_CHARACTERS}"
            )

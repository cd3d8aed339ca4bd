"""One service of which several objects handle the RPCs."""

from __future__ import annotations

import pytest

from resolute_serving.server.handlers import combine_handlers


class Servicer:
    """As gRPC generates one."""

    def Get(self) -> str:  # noqa: N802 - as RPCs are called
        raise NotImplementedError

    def Set(self) -> str:  # noqa: N802 - as RPCs are called
        raise NotImplementedError


class Getting:
    def Get(self) -> str:  # noqa: N802 - as RPCs are called
        return "got"


class Setting:
    def Set(self) -> str:  # noqa: N802 - as RPCs are called
        return "set"


def test_each_rpc_has_the_handler_of_one_part() -> None:
    combined = combine_handlers(Servicer, Getting(), Setting())
    assert (combined.Get(), combined.Set()) == ("got", "set")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((Getting(),), r"Servicer\.Set has 0 handlers"),
        ((Getting(), Setting(), Setting()), r"Servicer\.Set has 2 handlers"),
    ],
)
def test_an_rpc_without_one_handler_is_an_error(parts: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        combine_handlers(Servicer, *parts)

"""What admins see of the server: its settings and its log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.services.access import Calls, Scenario, calls
from support.services.in_process import Running

from resolute.api.experiments.v1 import cluster_service_pb2 as pb2
from resolute.contracts.values import to_mapping
from resolute.errors import InvalidArgumentError, PermissionDeniedError
from resolute_experiments.settings import ExperimentsSettings
from resolute_serving.context import Role
from resolute_serving.observability.recent_lines import MOST_LINES, RECENT_LINES


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """A logger whose lines the server keeps."""
    logger = logging.getLogger("tested server")
    logger.propagate = False
    logger.addHandler(RECENT_LINES)
    yield logger
    logger.removeHandler(RECENT_LINES)


def test_the_log_is_sent_from_its_end_and_then_as_it_grows(
    play: Callable[[Scenario], None], log: logging.Logger
) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        for number in range(MOST_LINES + 7):
            log.warning("line %d", number)
        request = pb2.FollowServerLogRequest(follow=True)
        found: list[str] = []
        following = admin.cluster.FollowServerLog(request)
        async for response in following:
            found += response.lines
            if len(found) == MOST_LINES:
                log.warning("one more")
            if "one more" in found:
                break
        following.cancel()
        assert found == [*(f"line {number}" for number in range(7, MOST_LINES + 7)), "one more"]
        last = [one async for one in admin.cluster.FollowServerLog(pb2.FollowServerLogRequest(tail=2))]
        assert [line for one in last for line in one.lines] == [f"line {MOST_LINES + 6}", "one more"]
        with pytest.raises(InvalidArgumentError, match="tail is -1"):
            await anext(aiter(admin.cluster.FollowServerLog(pb2.FollowServerLogRequest(tail=-1))))

    play(scenario)


def test_only_admins_see_settings_and_log(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        config = (await admin.cluster.GetServerConfig(pb2.GetServerConfigRequest())).config
        assert to_mapping(config)["lease_ttl"] == 30.0
        async with calls(running, running.user_token(name="ada", role=Role.EDITOR)) as other:
            with pytest.raises(PermissionDeniedError):
                await other.cluster.GetServerConfig(pb2.GetServerConfigRequest())
            with pytest.raises(PermissionDeniedError):
                await anext(aiter(other.cluster.FollowServerLog(pb2.FollowServerLogRequest())))

    play(scenario)


def test_no_credentials_are_among_the_settings(tmp_path: Path) -> None:
    defaults = {
        "checkpoint_storage": {"type": "s3", "bucket": "b", "access_key": "hush", "secret_key": "hush"},
        "environment": {"registry_auth": {"username": "ada", "password": "hush"}},
        "max_restarts": 2,
    }
    settings = ExperimentsSettings(address="a:1", runs_directory=tmp_path, cluster_defaults=defaults)
    shown = settings.shown()["cluster_defaults"]
    assert (shown["checkpoint_storage"]["bucket"], shown["max_restarts"]) == ("b", 2)
    assert "hush" not in str(settings.shown())

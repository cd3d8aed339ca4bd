"""Settings of Ray's engine, and what it makes of what the driver says."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until_async

from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.termination_message import BEGAN, write_message
from resolute.errors import InvalidArgumentError, UnavailableError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import ContainerState
from resolute_engines.ray.client import Driver
from resolute_engines.ray.settings import RayPoolOptions
from resolute_engines.ray.states import leftover_containers_of, reports_of
from resolute_engines.settings import read_resource_settings

DOCS = Path(__file__).parents[4] / "docs" / "ray.md"
NOTHING = {"live": False, "made": False, "began": False, "node_lost": False, "word": None, "over": None}
LIVES = {**NOTHING, "live": True, "made": True}
RUNS = {**LIVES, "began": True}
GONE = {**RUNS, "live": False}


def opened(folder: Path, text: str) -> Any:
    path = folder / "pools.yaml"
    path.write_text(text)
    environment = EngineEnvironment(
        cluster_id="0123456789",
        address="127.0.0.1:1",
        tls=None,
        outage_timeout=3600.0,
        log_wait=10.0,
        runs_directory=folder / "runs",
        slots=2,
        nodes=1,
    )
    return [create_engine(engine, environment) for engine in read_resource_settings(path).engines]


def test_settings_of_the_documentation_are_accepted(tmp_path: Path) -> None:
    (example,) = [text for text in DOCS.read_text().split("```yaml\n") if "type: ray" in text]
    names = [pool.name for manager in opened(tmp_path, example.split("```")[0]) for pool in manager.pools()]
    assert sorted(names) == ["default", "nodes"]


@pytest.mark.parametrize(
    ("engine", "pool", "complaint"),
    [
        ("type: ray", "", "engines.far.address: missing"),
        (
            'type: ray, address: "ray://head:10001"',
            "",
            "engines.far.address: found .*host:port of Ray's head",
        ),
        ("type: ray, address: head", "", "engines.far.address: found"),
        ('type: ray, address: "head:1", user: x', "", "engines.far.user"),
        ('type: ray, address: "head:1"', "slot_type: tpu", r"resource_pools\[0\].slot_type"),
        ('type: ray, address: "head:1"', "resources: {a: 0}", r"resource_pools\[0\].resources.a"),
    ],
)
def test_wrong_settings_are_refused_by_their_place(
    tmp_path: Path, engine: str, pool: str, complaint: str
) -> None:
    text = f"resource_pools: [{{pool_name: a, engine: far, {pool}}}]\nengines: {{far: {{{engine}}}}}\n"
    with pytest.raises(InvalidArgumentError, match=complaint):
        opened(tmp_path, text)


def test_container_wants_its_slots_and_what_its_pool_says() -> None:
    pool = RayPoolOptions.model_validate({"resources": {"accelerator_type:A100": 0.001}})
    assert pool.bundle(2) == {"GPU": 2.0, "accelerator_type:A100": 0.001}
    assert pool.bundle(0) == {"CPU": 1.0, "accelerator_type:A100": 0.001}


@pytest.mark.parametrize(
    ("one", "more", "state", "reason"),
    [
        (NOTHING, {}, ContainerState.UNKNOWN, ""),
        (LIVES, {"reason": "NO_RESOURCES"}, ContainerState.QUEUED, "NO_RESOURCES: other groups"),
        (LIVES, {"reason": "REMOVED"}, ContainerState.QUEUED, "REMOVED"),
        (LIVES, {"placed": True, "reason": "FINISHED"}, ContainerState.STARTING, ""),
        (RUNS, {}, ContainerState.RUNNING, ""),
        (GONE, {}, ContainerState.ENDED, "its actor ended"),
        ({**GONE, "node_lost": True}, {}, ContainerState.ENDED, "its node of Ray is gone"),
        ({**RUNS, "word": BEGAN}, {}, ContainerState.ENDED, ""),
        ({**GONE, "began": False}, {}, ContainerState.ENDED, "its actor ended"),
    ],
)
def test_state_follows_from_actor_and_keys(
    one: dict[str, Any], more: dict[str, Any], state: ContainerState, reason: str
) -> None:
    (report,) = reports_of("t.1", _seen(one, **more))
    assert (report.state, report.exit) == (state, None)
    assert report.reason.startswith(reason)
    assert bool(report.reason) == bool(reason)


def test_end_is_the_supervisors_own_word() -> None:
    record = ExitRecord(exit_code=3, failure="it failed")
    (report,) = reports_of("t.1", _seen({**GONE, "word": write_message(record)}))
    assert report.exit == record


@pytest.mark.parametrize("word", ["No module named resolute_launch", '{"exit_code": "none"}', ""])
def test_other_words_are_why_nothing_began(word: str) -> None:
    (report,) = reports_of("t.1", _seen({**GONE, "word": word}))
    assert report.exit is not None
    assert report.exit.failed_before_entrypoint
    assert word in report.exit.failure


def test_what_was_taken_out_of_the_queue_was_not_lost() -> None:
    (report,) = reports_of("t.1", _seen({**NOTHING, "made": True}, withdrawn=True))
    assert report.exit is not None
    assert report.exit.acknowledged
    (began,) = reports_of("t.1", _seen(GONE, withdrawn=True))
    assert began.lost


@pytest.mark.parametrize(
    ("one", "ended", "sends", "sent"),
    [
        (RUNS, False, True, False),
        ({**RUNS, "word": BEGAN}, True, True, False),
        ({**RUNS, "word": BEGAN, "over": True}, True, False, True),
        ({**RUNS, "word": BEGAN, "over": False}, True, False, False),
        (GONE, True, False, False),
    ],
)
def test_what_is_left_sends_until_it_is_over(
    one: dict[str, Any], ended: bool, sends: bool, sent: bool
) -> None:
    leftover_containers = leftover_containers_of(_seen(one))
    (part,) = leftover_containers.parts
    assert (leftover_containers.ended, part.sends, part.sent, part.over) == (ended, sends, sent, not sends)


async def _ask(driver: Driver) -> Any:
    try:
        return await driver.call("names")
    finally:
        await driver.close()


def test_driver_that_cannot_start_is_an_engine_that_does_not_answer(tmp_path: Path) -> None:
    driver = Driver("127.0.0.1:1", prefix="resolute-c-", python=str(tmp_path / "none"))
    with pytest.raises(UnavailableError, match="No such file"):
        asyncio.run(_ask(driver))


def test_missing_library_says_what_to_install(tmp_path: Path) -> None:
    # An interpreter that sees nothing of what is installed.
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    driver = Driver("127.0.0.1:1", prefix="resolute-c-", python=str(bare))
    with pytest.raises(UnavailableError, match="pip install ray, in the version"):
        asyncio.run(_ask(driver))


def test_watch_ends_with_the_engine_though_ray_was_being_asked(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    # It takes the first question, and answers none.
    silent = tmp_path / "python"
    silent.write_text(f"#!/bin/sh\nread question\ntouch {asked}\nexec cat\n")
    silent.chmod(0o755)
    text = (
        "resource_pools: [{pool_name: a, engine: far}]\n"
        f'engines: {{far: {{type: ray, address: "head:1", driver_python: {silent}}}}}\n'
    )

    async def watched() -> list[Any]:
        (manager,) = opened(tmp_path, text)
        watching = asyncio.ensure_future(_all(manager.watch()))
        await wait_until_async(asked.exists, what="the question")
        await manager.close()
        return await watching

    assert asyncio.run(watched()) == []


async def _all(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


def _seen(one: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"withdrawn": False, "placed": False, "reason": "", "containers": [one], **more}

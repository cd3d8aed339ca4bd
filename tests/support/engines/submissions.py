"""Launches that are cut short at any of their calls: the answer is lost, or the control plane is killed."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol

import pytest
from support.clusters.control_plane import ControlPlane
from support.engines.session import EngineUnderTest, cleared, engine_session, scenario

from resolute.errors import UnavailableError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import AllocationSpec, ContainerState, Engine
from resolute_engines.settings import EngineSettings


class SubmittingEngine(EngineUnderTest, Protocol):
    """An engine whose calls can be cut off."""

    @property
    def call(self) -> Callable[..., Any]:
        """The method that makes each of its calls, of the class and not of an object."""

    @property
    def opened_by(self) -> tuple[EngineSettings, EngineEnvironment]:
        """What opens it."""


class Submissions:
    """The cases, for engines that give ``engine``; each names how many calls a launch of its has."""

    calls: int

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One case for each call of a launch."""
        if "after" in metafunc.fixturenames:
            metafunc.parametrize("after", range(1, self.calls + 1))

    @pytest.mark.sampled(2, group="lost answers")
    def test_a_launch_of_which_an_answer_was_lost_goes_on(self, engine: SubmittingEngine, after: int) -> None:
        async def body() -> None:
            with engine.control_plane("echo done") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    with _cut_off(engine.call, after, lost), pytest.raises(UnavailableError):
                        await session.engine.launch(engine.spec(plane))
                    await _launched_once(session.engine, engine.spec(plane), plane)

        scenario(body)

    @pytest.mark.sampled(2, group="kills in mid-submit")
    def test_a_launch_whose_control_plane_was_killed_goes_on_in_the_next_life(
        self, engine: SubmittingEngine, after: int
    ) -> None:
        async def body() -> None:
            with engine.control_plane("echo done") as plane:
                async with cleared(engine):
                    order = _Order(*engine.opened_by, engine.spec(plane), engine.call, after)
                    killed = await asyncio.to_thread(
                        subprocess.run,
                        [sys.executable, "-m", "support.engines.submissions"],
                        input=pickle.dumps(order),
                        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                        check=False,
                        timeout=120,
                    )
                    assert killed.returncode == -signal.SIGKILL
                    async with engine_session(engine) as second:
                        await _launched_once(second.engine, engine.spec(plane), plane)

        scenario(body)


async def _launched_once(manager: Engine, spec: AllocationSpec, plane: ControlPlane) -> None:
    reports = await manager.inspect(spec.allocation_id)
    if not reports or any(report.state is ContainerState.UNKNOWN for report in reports):
        await manager.launch(spec)
    while True:
        (report,) = await manager.inspect(spec.allocation_id)
        if report.state is ContainerState.ENDED:
            break
        await asyncio.sleep(0.1)
    assert report.exit is not None
    assert (report.exit.exit_code, report.exit.failure) == (0, "")
    assert plane.calls.count("GetLaunchSpec") == 1


_launching: ContextVar[bool] = ContextVar("launching", default=False)
"""Whether a call is one of the launch: who watches meanwhile has calls of its own."""


@dataclass(frozen=True)
class _Order:
    settings: EngineSettings
    environment: EngineEnvironment
    spec: AllocationSpec
    call: Callable[..., Any]
    after: int


def lost() -> None:
    """The answer is lost on its way."""
    raise UnavailableError("the answer was lost")


def killed() -> None:
    """The process is killed when the answer arrives."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def _cut_off(call: Callable[..., Any], after: int, end: Any) -> Iterator[None]:
    """Has a method come to an end after some calls, each of which did what it does."""
    owner_name, _, name = call.__qualname__.partition(".")
    owner, count = getattr(sys.modules[call.__module__], owner_name), 0

    @wraps(call)
    async def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        answer = await call(*arguments, **named)
        if _launching.get():
            count += 1
            if count == after:
                end()
        return answer

    setattr(owner, name, counted)
    token = _launching.set(True)
    try:
        yield
    finally:
        _launching.reset(token)
        setattr(owner, name, call)


async def _launch(order: _Order) -> None:
    manager = create_engine(order.settings, order.environment)
    with _cut_off(order.call, order.after, killed):
        await manager.launch(order.spec)


if __name__ == "__main__":
    asyncio.run(_launch(pickle.load(sys.stdin.buffer)))

"""Simulations, replays and searches by models over the wire, as the command line asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.processes.workers import worker_processes
from support.services.searcher import Player, Searcher, SearchSession, adaptive, run, searcher, spec

from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.cli.search.curves import read_curves
from resolute.cli.search.plot import draw
from resolute.cli.search.replay import show
from resolute.client.connection.endpoint import Endpoint
from resolute.client.connection.session import Session
from resolute.client.remote.searches import Curve, Searches
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError, ResoluteError

SEARCH = "5b8e1a62-4b3c-4d0f-9a59-6f0a2f0f6a10"
T = TypeVar("T")


async def asking(service: Searcher, ask: Callable[[Searches], T]) -> T:
    """Lets a person's client ask, in a thread of its own."""

    def work() -> T:
        token = service.running.user_token()
        endpoint = Endpoint(
            address=service.running.address,
            token=lambda: token,
            token_origin="test",
            remedy="none",
            credential_file=Path("nowhere"),
        )
        with Session(endpoint) as session:
            return ask(Searches(session))

    return await asyncio.to_thread(work)


def test_a_simulation_is_drawn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            told = await asking(service, lambda searches: searches.simulate(adaptive(), slots=2))
            assert len(told.trials) == 16
            assert sum(rung.ended for rung in told.rungs) == 16
            for suffix, begin in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
                path = tmp_path / f"plot{suffix}"
                draw(told, path, name="adaptive_asha", metric="loss", units="batches")
                assert path.read_bytes().startswith(begin)
            curves = [Curve((0.0, 64.0), (1.0, 0.5))]
            flat = await asking(service, lambda searches: searches.simulate(adaptive(), curves=curves))
            assert flat.trials[0].metric == 1.0 - 0.5 * flat.trials[0].length / 64
            with pytest.raises(InvalidArgumentError, match="can be simulated over the network"):
                await asking(service, lambda searches: searches.simulate(adaptive(max_trials=60_000)))

    run(scenario, deadline=240)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("curves.csv", "trial,length,metric\n1,4,0.5\n1,1,0.9\n2,1,0.8\n"),
        ("curves.yaml", "- {lengths: [1, 4], metrics: [0.9, 0.5]}\n- {lengths: [1], metrics: [0.8]}\n"),
    ],
)
def test_curves_are_read_from_files(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_curves(tmp_path / name) == [Curve((1.0, 4.0), (0.9, 0.5)), Curve((1.0,), (0.8,))]
    (tmp_path / name).write_text("7\n")
    with pytest.raises(InvalidArgumentError, match="learning curve"):
        read_curves(tmp_path / name)


def test_a_replay_tells_at_any_event_who_rose_and_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            session = SearchSession(service)
            trials = await session.trials(adaptive(max_trials=16, max_rungs=2, max_length=16))
            bottom = [trial for trial in trials if (await session.operation(trial.trial_id)).length == 4]
            for trial, metric in zip(bottom[:5], (0.5, 0.4, 0.1, 0.2, 0.05), strict=True):
                await session.complete(trial.trial_id, metric, length=4)
            for until in range(1, 7):
                told = await asking(service, partial(Searches.replay, search_id=SEARCH, until=until))
                assert (told.equal, told.state["sequence"]) == (True, until)
                show(told, in_full=True)
                shown[until] = " ".join(capsys.readouterr().out.split())
            names[:] = [trial.trial_key for trial in bottom]

    shown: dict[int, str] = {}
    names: list[str] = []
    run(scenario, deadline=240)
    assert "Because it is one of the trials that the search begins with; it is the first length" in shown[1]
    assert "Decided create {" in shown[4]
    # The fourth report makes room for one, and it is not the one that reported.
    where = "on rung 0 of bracket 0"
    best = "the best 1 go on, the last of them with"
    assert f"Because it is among the best: 0.1 was 1st of 4 {where}; {best} 0.1" in shown[5]
    assert f'validate_after {{ trial_key: "{names[2]}" length: 16 }}' in shown[5]
    assert f"Because it is among the best: 0.05 was 1st of 5 {where}; {best} 0.05" in shown[6]


def modelled(**settings: Any) -> spec_pb.SearchSpec:
    given = {"max_length": 16, "max_trials": 9, "max_concurrent_trials": 3, "num_rungs": 2, **settings}
    return spec(external=spec_pb.ExternalMethod(name="optuna", settings=to_value(given)))


def test_a_search_by_a_model_survives_its_server_and_replays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            client = service.platform()
            await client.CreateSearch(service_pb.CreateSearchRequest(search_id=SEARCH, spec=modelled()))
            player = Player(client, SEARCH, lambda number: 1.0 / number)
            await player.play(steps=4)
        async with searcher(tmp_path) as service:
            player.client = service.platform()
            # A search that waits for a suggestion continues when its actions are followed again.
            following = player.client.FollowActions(service_pb.FollowActionsRequest(search_id=SEARCH))
            await following.__aiter__().__anext__()
            following.cancel()
            played = await player.play()
            assert len(played.numbers) == 9
            told = await asking(service, lambda searches: searches.replay(SEARCH))
            assert (told.equal, told.decisions[-1:]) == (True, ("shutdown { }",))
            part = await asking(service, lambda searches: searches.replay(SEARCH, until=3))
            assert part.equal
            assert part.state["sequence"] == 3

    run(scenario, deadline=240)


def endless() -> service_pb.SimulateSearchRequest:
    """A simulation that takes minutes: long curves are read from their beginning for each of many trials."""
    curve = service_pb.SimulateSearchRequest.Curve(lengths=range(20_000), metrics=[0.5] * 20_000)
    spec = adaptive(max_trials=50_000, max_length=2**40, max_concurrent_trials=16)
    return service_pb.SimulateSearchRequest(spec=spec, curves=[curve])


def test_endless_simulations_of_one_caller_keep_nobody_waiting_and_end_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            eve = service.client(service.running.user_token(name="eve"))
            ada = service.client(service.running.user_token(name="ada"))
            hostile = [asyncio.ensure_future(eve.SimulateSearch(endless(), timeout=600)) for _ in range(4)]
            request = service_pb.SimulateSearchRequest(spec=adaptive(max_trials=4))
            assert (await ada.SimulateSearch(request, timeout=300)).events > 4
            hostile[0].cancel()
        # The server stopped while simulations ran and waited.
        outcomes = await asyncio.gather(*hostile, return_exceptions=True)
        assert all(isinstance(one, (ResoluteError, asyncio.CancelledError)) for one in outcomes)

    run(scenario, deadline=400)
    assert not worker_processes()

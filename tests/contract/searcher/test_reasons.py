"""Every event, operation and action of a search says why, as data."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.services.searcher import SearchSession, adaptive, closed, exited, run, searcher, spec

from resolute.api.searcher.v1 import event_pb2, reason_pb2
from resolute.api.searcher.v1 import operation_pb2 as operation_pb
from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.contracts.values import to_value
from resolute_searcher.methods.successive_halving.rung import Rung

KEY = "0b9c6c1e-2f4e-4f7b-9f53-3d4f6c9a1b2d"


@pytest.fixture
def backend(database_url: str, tmp_path: Any) -> dict[str, Any]:
    return {"tmp_path": tmp_path, "database_url": database_url}


def halving(**fields: Any) -> spec_pb.SearchSpec:
    given = {"num_rungs": 2, "max_length": 9, "max_trials": 4, "divisor": 3.0, "max_concurrent_trials": 3}
    return spec(async_halving=spec_pb.AsyncHalvingMethod(**{**given, **fields}))


def kinds(entry: event_pb2.LogEntry) -> list[str]:
    """The kinds of the reasons of an entry's operations."""
    names = [reason_pb2.ReasonKind.Name(operation.reason.kind) for operation in entry.operations]
    return [name.removeprefix("REASON_KIND_").lower() for name in names]


def event_kind(entry: event_pb2.LogEntry) -> str:
    name = reason_pb2.ReasonKind.Name(entry.event.reason.kind)
    return name.removeprefix("REASON_KIND_").lower()


def test_a_promotion_says_rung_rank_metric_and_threshold(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            trials = await session.trials(halving())
            for trial, metric in zip(trials, (0.9, 0.5, 0.7), strict=True):
                await session.complete(trial.trial_id, metric, length=3)
            log = await session.log()
            assert kinds(log[0]) == ["initial_trial", "first_length"] * 3
            assert event_kind(log[0]) == "search_created"
            assert kinds(log[1]) == ["free_slot", "first_length"]
            # The third report makes the top one large, and the second trial stands there.
            (promotion,) = log[3].operations
            assert promotion.validate_after.trial_key == trials[1].trial_key
            assert promotion.reason == reason_pb2.Reason(
                kind=reason_pb2.REASON_KIND_TOP_OF_RUNG,
                bracket=0,
                rung=0,
                rank=1,
                rank_of=3,
                metric=0.5,
                threshold=0.5,
                top_size=1,
            )
            assert event_kind(log[3]) == "trial_reported"
            assert log[3].event.reason.cause_sequence == 1

    run(scenario)


def test_a_stop_says_what_the_trial_would_have_had_to_reach(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            accuracy = halving(stop_once=True)
            accuracy.smaller_is_better = False
            trials = await session.trials(accuracy)
            await session.complete(trials[0].trial_id, 0.8, length=3)
            await session.complete(trials[1].trial_id, 0.6, length=3)
            await session.complete(trials[0].trial_id, 0.9, length=9)
            *_, first, second, last = await session.log()
            assert kinds(first) == ["top_of_rung"]
            assert kinds(second) == ["below_top_of_rung", "free_slot", "first_length"]
            assert second.operations[0].reason == reason_pb2.Reason(
                kind=reason_pb2.REASON_KIND_BELOW_TOP_OF_RUNG,
                bracket=0,
                rung=0,
                rank=2,
                rank_of=2,
                metric=0.6,
                threshold=0.8,
                top_size=1,
            )
            actions = [action.reason for action in second.actions]
            assert actions[0] == second.operations[0].reason
            assert kinds(last) == ["max_length_reached"]

    run(scenario)


def test_reasons_stay_as_they_were_recorded_when_the_code_of_the_method_changes(
    backend: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        key = Ed25519PrivateKey.generate()
        async with searcher(**backend, key=key) as service:
            session = SearchSession(service)
            trials = await session.trials(halving())
            for trial, metric in zip(trials, (0.9, 0.5, 0.7), strict=True):
                await session.complete(trial.trial_id, metric, length=3)
            before = await session.log()
        # Another release of the method ranks the other way round and goes by larger tops.
        monkeypatch.setattr(Rung, "rank", lambda _rung, _trial_key: 99)
        monkeypatch.setattr(Rung, "_top_size", lambda _rung, entries: entries)
        async with searcher(**backend, key=key) as service:
            session = SearchSession(service)
            assert await session.log() == before
            assert not (await session.replay()).equal

    run(scenario)


def test_an_invalid_trial_is_closed_and_replaced_and_says_so(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            trials = await session.trials(halving())
            await session.report(exited(trials[0].trial_key, event_pb2.EXIT_REASON_INVALID_HP))
            _, exit_, close = await session.log()
            assert (event_kind(exit_), event_kind(close)) == ("exited", "exited")
            assert close.event.reason.cause_sequence == exit_.event.sequence
            assert kinds(exit_) == ["invalid_hyperparameters", "replacement", "first_length"]

    run(scenario)


def test_brackets_are_numbered_and_the_end_says_why(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            await session.trials(adaptive(max_trials=4, max_rungs=2, max_length=16))
            (started,) = await session.log()
            created = [one for one in started.operations if one.HasField("create")]
            assert (
                {one.reason.bracket for one in created} == {one.create.bracket for one in created} == {0, 1}
            )
            for one in created:
                key = one.create.trial_key
                await session.report(exited(key, event_pb2.EXIT_REASON_ERRORED, f"exit {key}"))
            last = (await session.log())[-1]
            assert kinds(last)[-1] == "all_trials_failed"
            assert last.actions[-1].reason.kind == reason_pb2.REASON_KIND_ALL_TRIALS_FAILED

    run(scenario)


def test_a_random_search_says_which_trial_fills_a_slot_and_which_replaces(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            method = spec_pb.RandomMethod(max_length=5, max_trials=3, max_concurrent_trials=1)
            (first,) = await session.trials(spec(random=method))
            await session.report(exited(first.trial_key, event_pb2.EXIT_REASON_INVALID_HP, "refused"))
            second = (await session.actions())[-2].create_trial
            await session.complete(second.trial_id, 0.5, length=5)
            await session.report(closed(second.trial_key, "done"))
            log = await session.log()
            assert kinds(log[0]) == ["initial_trial", "first_length", "max_length_reached"]
            assert kinds(log[2])[0] == "replacement"
            assert event_kind(log[-1]) == "closed_by_search"
            assert kinds(log[-1])[0] == "free_slot"

    run(scenario)


def test_a_client_decides_and_cannot_give_another_reason(backend: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with searcher(**backend) as service:
            session = SearchSession(service)
            await session.create(spec(external=spec_pb.ExternalMethod(name="custom")))
            create = operation_pb.Operation.Create(trial_key=KEY, hparams=to_value({"x": 1}))
            lie = reason_pb2.Reason(kind=reason_pb2.REASON_KIND_INITIAL_TRIAL)
            await session.client.PostOperations(
                service_pb.PostOperationsRequest(
                    search_id=session.search_id,
                    operations=[operation_pb.Operation(create=create, reason=lie)],
                    answered_sequence=1,
                )
            )
            posted = (await session.log())[-1]
            assert kinds(posted) == ["client_decision"]
            assert event_kind(posted) == "client_decision"
            assert posted.event.reason.cause_sequence == 1
            assert posted.operations[0].create.HasField("trial_seed")

    run(scenario)

"""Lists of experiments and trials, updates of experiments, and repeated creations, through real gRPC."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf.field_mask_pb2 import FieldMask
from support.clusters.all_services import CONFIG, AllServices, all_services

from resolute import errors
from resolute.api.experiments.v1 import experiment_pb2, trial_pb2, trials_service_pb2
from resolute.api.experiments.v1 import experiments_service_pb2 as pb2
from resolute.contracts.values import from_value
from resolute_experiments.store.copies import validations
from resolute_experiments.store.copies.validations import TrialValidations


async def numbers(service: AllServices, **wanted: Any) -> list[int]:
    response = await service.experiments.ListExperiments(pb2.ListExperimentsRequest(**wanted))
    return [one.number for one in response.experiments]


@pytest.mark.timeout(90)
def test_experiments_are_filtered_ordered_and_paged(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            for name, labels in (("beta", ["a", "b"]), ("Alpha", ["b"]), ("gamma", ["a", "c\u00e9"])):
                await service.create(paused=True, name=name, labels=labels)
            assert await numbers(service) == [3, 2, 1]
            assert await numbers(service, order_by="name") == [2, 1, 3]
            assert await numbers(service, order_by="create_time") == [1, 2, 3]
            assert await numbers(service, labels=["a"]) == [3, 1]
            assert await numbers(service, labels=["a", "b"]) == [1]
            assert await numbers(service, labels=["c\u00e9"]) == [3]
            assert await numbers(service, name_contains="ALPH") == [2]
            assert await numbers(service, states=[experiment_pb2.EXPERIMENT_STATE_ACTIVE]) == []
            assert await numbers(service, states=[experiment_pb2.EXPERIMENT_STATE_PAUSED], page_size=1) == [3]
            assert await numbers(service, archived=True) == []
            one = await service.get(1)
            assert one.workspace_name == one.project_name == "Uncategorized"
            assert await numbers(service, workspace_ids=[one.workspace_id]) == [3, 2, 1]
            assert await numbers(service, project_ids=[one.project_id + 1]) == []
            assert await numbers(service, owner_ids=[98765]) == []
            page = await service.experiments.ListExperiments(
                pb2.ListExperimentsRequest(order_by="name", page_size=2)
            )
            token = page.next_page_token
            assert await numbers(service, order_by="name", page_size=2, page_token=token) == [3]
            for wrong in ({"order_by": "config"}, {"owner_ids": range(101)}, {"page_token": token}):
                with pytest.raises(errors.InvalidArgumentError):
                    await numbers(service, **wrong)

    asyncio.run(body())


@pytest.mark.timeout(90)
def test_what_people_write_is_updated_by_mask_and_etag(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            created = await service.create(paused=True, name="before", description="kept", labels=["old"])

            async def update(paths: list[str], etag: str = "", **values: Any) -> experiment_pb2.Experiment:
                request = pb2.UpdateExperimentRequest(
                    key=experiment_pb2.ExperimentKey(number=1),
                    experiment=experiment_pb2.Experiment(**values),
                    update_mask=FieldMask(paths=paths),
                    etag=etag,
                )
                changed: experiment_pb2.Experiment = (
                    await service.experiments.UpdateExperiment(request)
                ).experiment
                return changed

            after = await update(
                ["name", "notes", "labels"], created.etag, name="after", notes="# N", labels=[]
            )
            assert (after.name, after.description, list(after.labels), after.notes) == (
                "after",
                "kept",
                [],
                "# N",
            )
            fields = after.config.map_value.fields
            assert fields["name"].string_value == "after"
            assert after.etag != created.etag
            with pytest.raises(errors.ConflictError):
                await update(["name"], created.etag, name="late")
            assert (await update(["description"])).description == ""
            for paths, values in (
                ([], {}),
                (["config"], {}),
                (["name"], {"name": " "}),
                (["labels"], {"labels": ["x"] * 2 + [""]}),
                (["notes"], {"notes": "x" * 1_000_001}),
            ):
                with pytest.raises(errors.InvalidArgumentError):
                    await update(paths, **values)
            listed = (await service.experiments.ListExperiments(pb2.ListExperimentsRequest())).experiments[0]
            assert (listed.name, listed.notes, listed.HasField("config")) == ("after", "", False)

    asyncio.run(body())


@pytest.mark.timeout(90)
def test_what_people_write_of_a_trial_is_updated_by_mask_and_etag(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            await service.create(paused=True)
            async for experiment in service.watch(1):
                if experiment.trial_count:
                    break
            trial = (await service.trials_of(1))[0]
            assert (list(trial.labels), trial.notes) == ([], "")

            async def update(paths: list[str], etag: str = "", **values: Any) -> trial_pb2.Trial:
                request = trials_service_pb2.UpdateTrialRequest(
                    key=trial_pb2.TrialKey(number=trial.number),
                    trial=trial_pb2.Trial(**values),
                    update_mask=FieldMask(paths=paths),
                    etag=etag,
                )
                changed: trial_pb2.Trial = (await service.trials.UpdateTrial(request)).trial
                return changed

            after = await update(["labels", "notes"], trial.etag, labels=["a", "b", "a"], notes="# N")
            assert (list(after.labels), after.notes) == (["a", "b"], "# N")
            with pytest.raises(errors.ConflictError):
                await update(["notes"], trial.etag, notes="late")
            assert (await update(["notes"], after.etag)).notes == ""
            for paths, values in (
                ([], {}),
                (["status"], {"status": "said by the script"}),
                (["labels"], {"labels": [""]}),
                (["notes"], {"notes": "x" * 1_000_001}),
            ):
                with pytest.raises(errors.InvalidArgumentError):
                    await update(paths, **values)
            await update(["notes"], notes="kept")
            listed = (await service.trials_of(1))[0]
            assert (list(listed.labels), listed.notes) == (["a", "b"], ""), "lists have no notes"
            key = trial_pb2.TrialKey(number=trial.number)
            got = await service.trials.GetTrial(trials_service_pb2.GetTrialRequest(trial=key))
            killed = await service.trials.KillTrial(trials_service_pb2.KillTrialRequest(trial=key))
            assert (got.trial.notes, killed.trial.notes) == ("kept", ""), "only where one is asked for"
            assert (got.trial.killed, killed.trial.killed) == (False, True)

    asyncio.run(body())


@pytest.mark.timeout(90)
def test_a_repeated_creation_gives_the_first_experiment(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            spec = pb2.ExperimentSpec(config_yaml=yaml.safe_dump(CONFIG), paused=True)
            request = pb2.CreateExperimentRequest(request_id=str(uuid.uuid4()), spec=spec)
            first = (await service.experiments.CreateExperiment(request)).experiment
            again = (await service.experiments.CreateExperiment(request)).experiment
            assert (again.number, again.experiment_id) == (first.number, first.experiment_id)
            request.spec.paused = False
            with pytest.raises(errors.AlreadyExistsError, match=request.request_id):
                await service.experiments.CreateExperiment(request)
            nameless = pb2.CreateExperimentRequest(spec=spec)
            made = [(await service.experiments.CreateExperiment(nameless)).experiment.number for _ in "ab"]
            assert made == [2, 3]
            large = pb2.CreateExperimentRequest(spec=spec, model_definition=b"x" * (2 * 1024 * 1024 + 1))
            with pytest.raises(errors.InvalidArgumentError, match="CreateExperimentInChunks"):
                await service.experiments.CreateExperiment(large)

    asyncio.run(body())


@pytest.mark.timeout(90)
def test_trials_are_ordered_by_their_validations(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            created = await service.create(paused=True)
            async for seen in service.watch(created.number):
                if seen.trial_count == 3:
                    break
            first, second, third = await service.trials_of(1)
            changes = [
                TrialValidations(
                    trial_id=trial.trial_id,
                    experiment_id=trial.experiment_id,
                    best_value=best,
                    best_steps=steps,
                    last_value=None,
                    last_steps=9,
                )
                for trial, best, steps in ((second, 0.25, 3), (third, 0.75, 4))
            ]
            await service.database.write(lambda c: validations.store(c, changes, revision=2))

            async def listed(order_by: str, **wanted: Any) -> list[int]:
                request = trials_service_pb2.ListTrialsRequest(
                    experiment=experiment_pb2.ExperimentKey(number=1), order_by=order_by, **wanted
                )
                return [trial.number for trial in (await service.trials.ListTrials(request)).trials]

            by_best = [second.number, third.number, first.number]
            assert await listed("best_validation") == by_best
            assert await listed("best_validation desc") == [third.number, second.number, first.number]
            assert await listed("last_validation desc, number") == [
                one.number for one in (first, second, third)
            ]
            assert await listed("best_validation", page_size=2) == by_best[:2]
            assert await listed("best_validation", skip=1) == by_best[1:]
            assert await listed("best_validation", skip=1, page_size=1) == by_best[1:2]
            assert await listed("best_validation", skip=7) == []
            assert await listed("number", started=True) == [second.number, third.number]
            assert await listed("number", without_diverged=True) == [first.number]
            assert await listed("number", started=True, without_diverged=True) == []
            named = [third.trial_id, first.trial_id, str(uuid.uuid4())]
            assert await listed("number", trial_ids=named) == [first.number, third.number]
            assert await listed("number", trial_ids=named, started=True) == [third.number]
            too_many = {"trial_ids": [first.trial_id] * 1001}
            for wrong in ({"skip": -1}, {"skip": 1_000_001}, {"max_hparams": -1}, too_many):
                with pytest.raises(errors.InvalidArgumentError, match=next(iter(wrong))):
                    await listed("number", **wrong)
            found = await service.trials_of(1)
            assert [(one.best_validation.value, one.best_validation.steps) for one in found[1:]] == [
                (0.25, 3),
                (0.75, 4),
            ]
            assert not found[0].HasField("best_validation")
            assert found[1].last_validation.steps == 9
            assert not found[1].last_validation.HasField("value")
            with pytest.raises(errors.InvalidArgumentError):
                await listed("metric")

    asyncio.run(body())


def test_numbers_of_trials_are_listed_by_their_keys(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            created = await service.create(paused=True)
            async for seen in service.watch(created.number):
                if seen.trial_count == 3:
                    break
            trials = await service.trials_of(1)

            async def listed(**wanted: Any) -> trials_service_pb2.ListTrialNumbersResponse:
                request = trials_service_pb2.ListTrialNumbersRequest(
                    experiment=experiment_pb2.ExperimentKey(number=1), **wanted
                )
                numbers: trials_service_pb2.ListTrialNumbersResponse
                numbers = await service.trials.ListTrialNumbers(request)
                return numbers

            whole = await listed()
            assert list(whole.numbers) == [one.number for one in trials]
            assert list(whole.trial_keys) == [one.trial_key for one in trials]
            assert (list(whole.trial_ids), whole.next_page_token) == ([], "")
            page = await listed(page_size=2)
            rest = await listed(page_size=2, page_token=page.next_page_token)
            assert [*page.numbers, *rest.numbers] == list(whole.numbers)
            assert not rest.next_page_token
            assert list((await listed(after_number=trials[1].number)).numbers) == [trials[2].number]
            named = await listed(trial_ids=[trials[2].trial_id, str(uuid.uuid4())])
            assert (list(named.numbers), list(named.trial_ids)) == ([trials[2].number], [trials[2].trial_id])
            for wrong in ({"page_size": -1}, {"trial_ids": [trials[0].trial_id] * 1001}):
                with pytest.raises(errors.InvalidArgumentError, match=next(iter(wrong))):
                    await listed(**wrong)

    asyncio.run(body())


@pytest.mark.timeout(90)
def test_what_may_be_large_is_left_out_where_it_is_not_wanted(tmp_path: Path) -> None:
    async def body() -> None:
        async with all_services(tmp_path) as service:
            hyperparameters = {"z": 1, "net": {"width": 8, "depth": 2}, "a": 5}
            created = await service.create(paused=True, hyperparameters=hyperparameters)
            async for seen in service.watch(created.number):
                if seen.trial_count == 3:
                    break
            key = experiment_pb2.ExperimentKey(number=1)
            brief = (
                await service.experiments.GetExperiment(pb2.GetExperimentRequest(experiment=key, brief=True))
            ).experiment
            whole = await service.get(1)
            assert whole.HasField("config")
            whole.ClearField("config")
            assert brief == whole
            assert sum(one.count for one in brief.trial_state_counts) == brief.trial_count == 3

            async def hparams(**wanted: Any) -> tuple[Any, int]:
                request = trials_service_pb2.ListTrialsRequest(experiment=key, page_size=2, **wanted)
                page = await service.trials.ListTrials(request)
                assert page.next_page_token
                return from_value(page.trials[0].hparams), page.trials[0].omitted_hparams

            assert await hparams() == (hyperparameters, 0)
            assert await hparams(max_hparams=4) == (hyperparameters, 0)
            assert await hparams(max_hparams=2) == ({"a": 5, "net": {"depth": 2}}, 2)
            assert await hparams(max_hparams=0) == ({}, 4)

    asyncio.run(body())

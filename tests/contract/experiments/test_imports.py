"""Experiments of other clusters over the wire, on both databases: as they were there, and once."""

from __future__ import annotations

import asyncio
import io
import math
import random
import tarfile
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import (
    experiment_pb2,
    experiments_service_pb2,
    imports_service_pb2,
    trial_pb2,
    trials_service_pb2,
)
from resolute.api.experiments.v1.experiments_service_pb2_grpc import ExperimentsServiceStub
from resolute.api.experiments.v1.imports_service_pb2_grpc import ImportsServiceStub
from resolute.api.experiments.v1.trials_service_pb2_grpc import TrialsServiceStub
from resolute.contracts.times import seconds_of, to_timestamp
from resolute.contracts.values import to_mapping, to_value
from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    InvalidConfigError,
    PermissionDeniedError,
)
from resolute.imports.identifiers import OldName
from resolute.rpc.channel import open_channel
from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role

_pb = imports_service_pb2
EXPERIMENT = OldName("there", "experiment", 7)
CONFIG = {
    "name": "old",
    "entrypoint": "python train.py",
    "searcher": {"name": "random", "metric": "loss", "max_trials": 2, "max_length": {"batches": 1}},
    "checkpoint_storage": {"type": "s3", "bucket": "old", "access_key": "AK", "secret_key": "SK"},
}


@dataclass(frozen=True)
class Calls:
    """What one user calls."""

    imports: Any
    uploads: Any
    """The same service, for what is sent in parts."""
    experiments: Any
    trials: Any

    async def experiment(
        self,
        config: str = "",
        *,
        old_name: OldName = EXPERIMENT,
        parts: Sequence[bytes] = (),
        copies: bool = False,
        **fields: Any,
    ) -> _pb.ImportExperimentResponse:
        """Imports the experiment, its code in some parts."""
        told = {
            "name": "old",
            "state": experiment_pb2.EXPERIMENT_STATE_ERROR,
            "owner_name": "somebody",
            "create_time": to_timestamp(100.0),
            "end_time": to_timestamp(200.0),
            "progress": 0.5,
        }
        request = _pb.ImportExperimentRequest(
            external_id=str(old_name),
            experiment=experiment_pb2.Experiment(**{**told, **fields}),
            config_yaml=config or yaml.safe_dump(CONFIG),
            copies_checkpoints=copies,
        )
        requests = [request, *(_pb.ImportExperimentRequest(model_definition=part) for part in parts)]
        answer: _pb.ImportExperimentResponse = await asyncio.to_thread(
            self.uploads.ImportExperiment, iter(requests)
        )
        return answer

    async def some_trials(
        self, *numbers: int, experiment_id: str = EXPERIMENT.id, **fields: Any
    ) -> _pb.ImportTrialsResponse:
        """Imports trials of it."""
        trials = [
            _pb.ImportedTrial(
                external_id=str(OldName("there", "trial", number)),
                create_time=to_timestamp(100.0 + number),
                hparams=to_value({"n": number}),
                **{"state": trial_pb2.TRIAL_STATE_COMPLETED, **fields},
            )
            for number in numbers
        ]
        request = _pb.ImportTrialsRequest(experiment_id=experiment_id, trials=trials)
        answer: _pb.ImportTrialsResponse = await self.imports.ImportTrials(request)
        return answer

    async def finish(self) -> None:
        """Says that it is whole."""
        await self.imports.FinishImport(_pb.FinishImportRequest(experiment_id=EXPERIMENT.id))

    async def get(self) -> experiment_pb2.Experiment:
        """Returns it as everybody sees it."""
        key = experiment_pb2.ExperimentKey(experiment_id=EXPERIMENT.id)
        request = experiments_service_pb2.GetExperimentRequest(experiment=key)
        found: experiment_pb2.Experiment = (await self.experiments.GetExperiment(request)).experiment
        return found


Scenario = Callable[[Running, Calls], Coroutine[Any, Any, None]]


@asynccontextmanager
async def calls(running: Running, token: str) -> AsyncIterator[Calls]:
    with open_channel(running.address, token=lambda: token) as uploads:
        async with running.channel(token) as channel:
            yield Calls(
                ImportsServiceStub(channel),
                ImportsServiceStub(uploads),
                ExperimentsServiceStub(channel),
                TrialsServiceStub(channel),
            )


@pytest.fixture
def play(tmp_path: Path, database_url: str) -> Callable[[Scenario], None]:
    async def run(scenario: Scenario) -> None:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with (
            serving([BLUEPRINT], tmp_path, database_url=database_url, key=key) as running,
            calls(running, running.user_token(name="admin", role=Role.ADMIN)) as admin,
        ):
            await scenario(running, admin)

    return lambda scenario: asyncio.run(run(scenario))


def test_what_comes_twice_is_there_once_and_as_it_was(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        first = await admin.experiment()
        assert not first.finished
        assert first.experiment.experiment_id == EXPERIMENT.id
        assert (await admin.experiment(name="another")).experiment == first.experiment
        assert first.experiment.importing
        assert "not complete" in first.experiment.warning
        assert first.storage.bucket.bucket == "old"
        told = (await admin.some_trials(3, 4)).trial_numbers
        assert list((await admin.some_trials(3, 4, 5)).trial_numbers)[:2] == list(told)
        await admin.finish()
        await admin.finish()
        assert (await admin.experiment()).finished
        found = await admin.get()
        assert (found.owner_name, found.progress) == ("somebody", 0.5)
        assert (found.importing, found.warning) == (False, "")
        assert (found.create_time.seconds, found.end_time.seconds) == (100, 200)
        assert found.state == experiment_pb2.EXPERIMENT_STATE_ERROR
        storage = to_mapping(found.config)["checkpoint_storage"]
        assert (storage["access_key"], storage["secret_key"]) == (None, None)
        key = experiment_pb2.ExperimentKey(experiment_id=EXPERIMENT.id)
        listed = await admin.trials.ListTrials(
            trials_service_pb2.ListTrialsRequest(experiment=key, include_runs=True)
        )
        assert [to_mapping(trial.hparams)["n"] for trial in listed.trials] == [3, 4, 5]
        assert [trial.external_id for trial in listed.trials] == [
            str(OldName("there", "trial", number)) for number in (3, 4, 5)
        ]

    play(scenario)


def test_an_experiment_started_when_its_first_trial_did(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        await admin.experiment()
        assert not (await admin.get()).HasField("start_time")
        for number, first in ((7, 107.0), (9, 107.0), (4, 104.0)):
            await admin.some_trials(number)
            assert seconds_of((await admin.get()).start_time) == first

    play(scenario)


def test_what_is_finished_gets_no_more_trials(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        await admin.experiment()
        await admin.some_trials(1)
        await admin.finish()
        await admin.some_trials(1)
        with pytest.raises(FailedPreconditionError, match="as a whole"):
            await admin.some_trials(1, 2)

    play(scenario)


def test_old_numbers_are_found(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        number = (await admin.experiment()).experiment.number
        (trial,) = (await admin.some_trials(5)).trial_numbers
        second = OldName("elsewhere", "experiment", 7)
        other = (await admin.experiment(old_name=second)).experiment.number

        async def found(**wanted: int) -> list[tuple[str, int]]:
            answer = await admin.imports.ListImported(_pb.ListImportedRequest(**wanted))
            return [(one.external_id, one.number) for one in answer.found]

        assert await found(experiment_number=7) == [(str(EXPERIMENT), number), (str(second), other)]
        assert await found(trial_number=5) == [("determined/there/trial/5", trial)]
        assert await found(experiment_number=5) == []
        with pytest.raises(InvalidArgumentError, match="experiment_number or trial_number"):
            await found()

    play(scenario)


def test_a_trial_of_another_experiment_is_refused(play: Callable[[Scenario], None]) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        await admin.experiment()
        await admin.some_trials(1)
        other = OldName("there", "experiment", 8)
        await admin.experiment(old_name=other)
        with pytest.raises(AlreadyExistsError, match="with another experiment than"):
            await admin.some_trials(2, 1, experiment_id=other.id)
        assert len((await admin.some_trials(2)).trial_ids) == 1

    play(scenario)


def test_code_of_many_parts_comes_as_one(play: Callable[[Scenario], None]) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("noise")
        info.size = 5 << 20
        archive.addfile(info, io.BytesIO(random.Random(1).randbytes(info.size)))
    code = buffer.getvalue()

    async def scenario(_: Running, admin: Calls) -> None:
        parts = [code[start : start + (1 << 20)] for start in range(0, len(code), 1 << 20)]
        told = (await admin.experiment(parts=parts)).experiment
        assert told.model_definition_bytes == len(code)
        key = experiment_pb2.ExperimentKey(experiment_id=EXPERIMENT.id)
        request = experiments_service_pb2.GetModelDefinitionRequest(experiment=key)
        kept = [part.chunk async for part in admin.experiments.GetModelDefinition(request)]
        assert b"".join(kept) == code

    play(scenario)


def test_one_whose_checkpoints_are_copied_names_the_storage_of_this_cluster(
    play: Callable[[Scenario], None],
) -> None:
    kept = {**CONFIG["checkpoint_storage"], "save_trial_best": 7}  # type: ignore[dict-item]
    config = yaml.safe_dump({**CONFIG, "checkpoint_storage": kept})

    async def scenario(_: Running, admin: Calls) -> None:
        first = await admin.experiment(config, copies=True)
        assert (first.copies_checkpoints, first.storage.WhichOneof("kind")) == (True, "directory")
        section = to_mapping(first.experiment.config)["checkpoint_storage"]
        assert (section["type"], section["save_trial_best"]) == ("shared_fs", 7)
        again = await admin.experiment(config)
        assert (again.copies_checkpoints, again.storage) == (True, first.storage)
        other = OldName("there", "experiment", 8)
        for copies in (False, True):
            lying = await admin.experiment(config, old_name=other, copies=copies)
            assert (lying.copies_checkpoints, lying.storage.bucket.bucket) == (False, "old")

    play(scenario)


def test_a_config_that_cannot_be_read_is_kept_as_it_was_written(play: Callable[[Scenario], None]) -> None:
    gone = {
        **CONFIG,
        "searcher": {"name": "pbt", "metric": "err", "smaller_is_better": False, "population_size": 9},
        "environment": {"registry_auth": {"username": "u", "password": "sesame"}},
        "hyperparameters": {"lr": {"type": "of another age"}},
    }

    async def scenario(_: Running, admin: Calls) -> None:
        answer = await admin.experiment(yaml.safe_dump(gone))
        assert "pbt" in answer.config_fault
        config = to_mapping(answer.experiment.config)
        assert config["searcher"]["name"] == "pbt"
        assert config["searcher"]["population_size"] == 9
        assert config["hyperparameters"] == gone["hyperparameters"]
        assert (answer.experiment.searcher_metric, answer.experiment.smaller_is_better) == ("err", False)
        assert answer.storage.bucket.bucket == "old"
        assert "sesame" not in str(config)

    play(scenario)


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize(
    ("storage", "fault"),
    [
        ({"type": "hdfs", "hdfs_url": "http://name:50070", "hdfs_path": "/ck"}, "hdfs was removed"),
        ({"type": "azure", "container": "c", "connection_string": "*****"}, "names no account"),
        ({"type": "shared_fs", "host_path": "/old", "storage_path": "../elsewhere"}, "inside host_path"),
        (None, ""),
    ],
)
def test_checkpoints_in_a_storage_that_is_unknown_here_are_nowhere(
    play: Callable[[Scenario], None], storage: dict[str, str] | None, fault: str, copies: bool
) -> None:
    async def scenario(_: Running, admin: Calls) -> None:
        config = yaml.safe_dump({**CONFIG, "checkpoint_storage": storage})
        told = await admin.experiment(config, copies=copies)
        assert fault in told.config_fault
        assert not told.HasField("storage"), "elsewhere they would be looked for in vain"

    play(scenario)


def test_what_cannot_be_is_refused(play: Callable[[Scenario], None]) -> None:
    async def scenario(running: Running, admin: Calls) -> None:
        with pytest.raises(InvalidArgumentError, match="has ended"):
            await admin.experiment(state=experiment_pb2.EXPERIMENT_STATE_ACTIVE)
        with pytest.raises(InvalidConfigError, match="no project 'lab/vision'"):
            await admin.experiment(workspace_name="lab", project_name="vision")
        await admin.experiment()
        with pytest.raises(InvalidArgumentError, match="has ended"):
            await admin.some_trials(1, state=trial_pb2.TRIAL_STATE_RUNNING)
        with pytest.raises(InvalidArgumentError, match="may have 500"):
            await admin.some_trials(*range(1, 502))
        with pytest.raises(InvalidArgumentError, match="UUID"):
            await admin.some_trials(1, source_checkpoint_id="none")
        with pytest.raises(InvalidArgumentError, match="twice"):
            await admin.some_trials(1, 2, 1)
        with pytest.raises(InvalidArgumentError, match="name: found"):
            await admin.experiment("not a config", name="")
        with pytest.raises(InvalidArgumentError, match="not a whole gzipped tar archive"):
            await admin.experiment(parts=[b"no", b" archive"])
        for progress in (math.nan, math.inf):
            with pytest.raises(InvalidArgumentError, match=r"experiment\.progress"):
                await admin.experiment(progress=progress)
        async with calls(running, running.user_token(name="ed", role=Role.EDITOR)) as editor:
            with pytest.raises(PermissionDeniedError):
                await editor.experiment()

    play(scenario)


def test_the_uuid_follows_from_the_old_name() -> None:
    assert EXPERIMENT.id == str(uuid.uuid5(uuid.NAMESPACE_URL, "determined/there/experiment/7"))
    assert OldName.parse(str(EXPERIMENT)) == EXPERIMENT
    assert OldName.parse("determined/there/experiment") is None
    assert OldName.parse("mine/there/experiment/7") is None

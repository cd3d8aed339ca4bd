"""The handlers of a scripted cluster, one for each call that the command line makes."""

# ruff: noqa: N802 - the contract names the handlers

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import yaml
from wire.cli.scripted_cluster import ClusterHandlers
from wire.cli.scripted_explanations import ExplanationHandlers
from wire.cli.scripted_state import TERMINAL, State, in_order

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2
from resolute.api.experiments.v1 import (
    access_service_pb2,
    cluster_service_pb2,
    experiment_pb2,
    experiments_service_pb2,
    template_pb2,
    trial_pb2,
    trials_service_pb2,
    user_pb2,
)
from resolute.api.logs.v1 import line_pb2, logs_service_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.api.searcher.v1 import search_spec_pb2, searcher_service_pb2
from resolute.contracts.values import from_value, to_value
from resolute.errors import ConflictError, IllegalTransitionError, NotFoundError
from resolute_serving.context import actor
from resolute_serving.pagination import decode_token, encode_token, page_size


class Handlers(ClusterHandlers, ExplanationHandlers):
    """Handlers of every service; each is registered for what it can answer."""

    def __init__(self, state: State, issue_token: Callable[[str], str], changed: asyncio.Condition) -> None:
        self.state = state
        self._issue_token = issue_token
        self._users: list[str] = []
        self._changed = changed

    def _experiment(self, key: experiment_pb2.ExperimentKey) -> experiment_pb2.Experiment:
        for message in self.state.experiments:
            if message.number == key.number or message.experiment_id == key.experiment_id:
                return message
        name = key.experiment_id or key.number
        raise NotFoundError(f"there is no experiment {name}", resource=f"experiment {name}")

    def _trial(self, key: trial_pb2.TrialKey) -> trial_pb2.Trial:
        for message in self.state.trials:
            if message.number == key.number or message.trial_id == key.trial_id:
                return message
        raise NotFoundError(f"there is no trial {key.trial_id or key.number}")

    async def _wait(self) -> None:
        async with self._changed:
            await self._changed.wait()

    # experiments

    async def CreateExperiment(self, request: Any, _context: Any) -> Any:
        self._enter("CreateExperiment")
        return experiments_service_pb2.CreateExperimentResponse(
            experiment=self._created(request.spec, request.model_definition), warnings=self.state.warnings
        )

    async def CreateExperimentInChunks(self, requests: Any, _context: Any) -> Any:
        self._enter("CreateExperimentInChunks")
        header, archive = None, bytearray()
        async for request in requests:
            if request.HasField("header"):
                header = request.header
            else:
                assert len(request.chunk) <= 1 << 20
                archive += request.chunk
        assert header is not None
        return experiments_service_pb2.CreateExperimentInChunksResponse(
            experiment=self._created(header.spec, bytes(archive)), warnings=self.state.warnings
        )

    def _created(
        self, spec: experiments_service_pb2.ExperimentSpec, archive: bytes
    ) -> experiment_pb2.Experiment:
        self.state.specs.append(spec)
        message = self.state.add_experiment()
        self.state.archives[message.experiment_id] = archive
        return message

    async def ValidateConfig(self, request: Any, _context: Any) -> Any:
        self._enter("ValidateConfig")
        spec = search_spec_pb2.SearchSpec(
            metric="accuracy", random=search_spec_pb2.RandomMethod(max_trials=3, max_length=4)
        )
        config = {"searcher": {"name": "random", "max_length": {"epochs": 4}}}
        return experiments_service_pb2.ValidateConfigResponse(
            config=to_value(config), search=spec, warnings=["a value is doubtful"]
        )

    async def GetExperiment(self, request: Any, _context: Any) -> Any:
        self._enter("GetExperiment")
        return experiments_service_pb2.GetExperimentResponse(experiment=self._experiment(request.experiment))

    async def ListExperiments(self, request: Any, _context: Any) -> Any:
        self._enter("ListExperiments")
        found = [
            message
            for message in in_order(self.state.experiments, request.order_by or "number desc")
            if (not request.states or message.state in request.states)
            and (not request.HasField("archived") or message.archived == request.archived)
            and request.name_contains in message.name
            and set(request.labels) <= set(message.labels)
            and (not request.project_ids or message.project_id in request.project_ids)
        ]
        page, token = _page(request, found)
        return experiments_service_pb2.ListExperimentsResponse(experiments=page, next_page_token=token)

    async def UpdateExperiment(self, request: Any, _context: Any) -> Any:
        self._enter("UpdateExperiment")
        message = self._experiment(request.key)
        if request.etag and request.etag != message.etag:
            raise ConflictError(f"experiment {message.number} was changed meanwhile")
        for path in request.update_mask.paths:
            message.ClearField(path)
        wanted = experiment_pb2.Experiment()
        request.update_mask.MergeMessage(request.experiment, wanted)
        message.MergeFrom(wanted)
        message.etag += "'"
        return experiments_service_pb2.UpdateExperimentResponse(experiment=message)

    async def PauseExperiment(self, request: Any, _context: Any) -> Any:
        message = self._moved(request, experiment_pb2.EXPERIMENT_STATE_PAUSED, "PauseExperiment")
        return experiments_service_pb2.PauseExperimentResponse(experiment=message)

    async def ActivateExperiment(self, request: Any, _context: Any) -> Any:
        message = self._moved(request, experiment_pb2.EXPERIMENT_STATE_ACTIVE, "ActivateExperiment")
        return experiments_service_pb2.ActivateExperimentResponse(experiment=message)

    async def CancelExperiment(self, request: Any, _context: Any) -> Any:
        message = self._moved(request, experiment_pb2.EXPERIMENT_STATE_STOPPING_CANCELED, "CancelExperiment")
        return experiments_service_pb2.CancelExperimentResponse(experiment=message)

    async def KillExperiment(self, request: Any, _context: Any) -> Any:
        message = self._moved(request, experiment_pb2.EXPERIMENT_STATE_STOPPING_KILLED, "KillExperiment")
        return experiments_service_pb2.KillExperimentResponse(experiment=message)

    async def ArchiveExperiment(self, request: Any, _context: Any) -> Any:
        self._enter("ArchiveExperiment")
        message = self._experiment(request.experiment)
        message.archived = request.archived
        return experiments_service_pb2.ArchiveExperimentResponse(experiment=message)

    async def DeleteExperiment(self, request: Any, _context: Any) -> Any:
        self._enter("DeleteExperiment")
        message = self._experiment(request.experiment)
        if message.state not in TERMINAL:
            raise IllegalTransitionError.between(
                f"experiment {message.number}",
                from_state="ACTIVE",
                to_state="DELETING",
                remedy="kill it first",
            )
        message.state = experiment_pb2.EXPERIMENT_STATE_DELETING
        return experiments_service_pb2.DeleteExperimentResponse(experiment=message)

    async def WatchExperiments(self, request: Any, _context: Any) -> AsyncIterator[Any]:
        self._enter("WatchExperiments")
        (wanted,) = request.experiments
        message = self._experiment(wanted.experiment)
        seen = wanted.after_revision
        while True:
            if message.revision > seen:
                trials = [
                    t
                    for t in self.state.trials
                    if t.experiment_id == message.experiment_id and t.revision > seen
                ]
                seen = message.revision
                bare = experiment_pb2.Experiment()
                bare.CopyFrom(message)
                bare.ClearField("config")
                change = experiments_service_pb2.WatchExperimentsResponse.ExperimentChange(
                    experiment=bare, trials=trials if wanted.include_trials else []
                )
                yield experiments_service_pb2.WatchExperimentsResponse(
                    key=wanted.key, experiment_change=change
                )
                if message.state in TERMINAL:
                    return
                continue  # it may have changed while the response was written
            self._fail("WatchExperiments midway")
            await self._wait()

    async def GetModelDefinition(self, request: Any, _context: Any) -> AsyncIterator[Any]:
        self._enter("GetModelDefinition")
        archive = self.state.archives[self._experiment(request.experiment).experiment_id]
        for start in range(0, len(archive), 1000):
            yield experiments_service_pb2.GetModelDefinitionResponse(chunk=archive[start : start + 1000])

    def _moved(self, request: Any, state: int, method: str) -> experiment_pb2.Experiment:
        self._enter(method)
        message = self._experiment(request.experiment)
        if message.state in TERMINAL:
            raise IllegalTransitionError.between(
                f"experiment {message.number}",
                from_state=experiment_pb2.ExperimentState.Name(message.state)[17:],
                to_state=experiment_pb2.ExperimentState.Name(state)[17:],  # type: ignore[arg-type]
            )
        message.state = state  # type: ignore[assignment]
        message.revision += 1
        return message

    # trials

    async def GetTrial(self, request: Any, _context: Any) -> Any:
        self._enter("GetTrial")
        return trials_service_pb2.GetTrialResponse(trial=self._trial(request.trial))

    async def ListTrials(self, request: Any, _context: Any) -> Any:
        self._enter("ListTrials")
        owner = self._experiment(request.experiment).experiment_id
        best = {one.trial_id: one for one in self.state.bests}
        trials = [trial for trial in self.state.trials if trial.experiment_id == owner]
        for trial in trials:
            if trial.trial_id in best:
                found = best[trial.trial_id]
                trial.best_validation.CopyFrom(trial_pb2.Validation(value=found.value, steps=found.steps))
        page, token = _page(request, in_order(trials, request.order_by or "number"))
        return trials_service_pb2.ListTrialsResponse(trials=page, next_page_token=token)

    async def KillTrial(self, request: Any, _context: Any) -> Any:
        self._enter("KillTrial")
        trial = self._trial(request.trial)
        trial.state = trial_pb2.TRIAL_STATE_STOPPING
        return trials_service_pb2.KillTrialResponse(trial=trial)

    # logs

    async def ListLines(self, request: Any, _context: Any) -> Any:
        self._enter("ListLines")
        found = [line for line in self.state.lines if _wanted(line, request.filter)]
        page, token = _page(request, found[::-1] if request.order_by == "line_id desc" else found)
        return logs_service_pb2.ListLinesResponse(lines=page, next_page_token=token)

    async def FollowLines(self, request: Any, _context: Any) -> AsyncIterator[Any]:
        self._enter("FollowLines")
        (wanted,) = request.subscriptions
        last = wanted.after_line_id
        while True:
            found = [
                line for line in self.state.lines if line.line_id > last and _wanted(line, wanted.filter)
            ]
            if found:
                last = found[-1].line_id
                yield logs_service_pb2.FollowLinesResponse(key=wanted.key, lines=found, cursor=last)
                continue
            self._fail("FollowLines midway")
            if wanted.filter.trial_id in self.state.closed_logs:
                yield logs_service_pb2.FollowLinesResponse(key=wanted.key, cursor=last, complete=True)
                return
            await self._wait()

    # metrics

    async def GetBestValidation(self, request: Any, _context: Any) -> Any:
        self._enter("GetBestValidation")
        mine = {t.trial_id for t in self.state.trials if t.experiment_id == request.experiment_id}
        bests = [best for best in self.state.bests if best.trial_id in mine]
        response = metrics_service_pb2.GetBestValidationResponse(
            trial_bests=[best for best in bests if best.trial_id in request.trial_ids]
        )
        if bests:
            response.experiment_best.CopyFrom(max(bests, key=lambda best: best.value))
        return response

    async def ListSummaries(self, request: Any, _context: Any) -> Any:
        self._enter("ListSummaries")
        found = [
            item
            for item in self.state.summaries
            if item.trial_id in request.trial_ids and (not request.names or item.name in request.names)
        ]
        page, token = _page(request, found)
        return metrics_service_pb2.ListSummariesResponse(summaries=page, next_page_token=token)

    async def GetSeries(self, request: Any, _context: Any) -> Any:
        self._enter("GetSeries")
        points = [
            (report.steps, from_value(report.metrics[request.name]), float(report.steps))
            for report in self.state.reports[request.trial_id]
            if report.group == request.group and request.name in report.metrics
        ]
        steps, values, times = zip(*points, strict=True) if points else ((), (), ())
        return metrics_service_pb2.GetSeriesResponse(steps=steps, values=values, times=times)

    async def WatchSeries(self, request: Any, context: Any) -> AsyncIterator[Any]:
        self._enter("WatchSeries")
        (wanted,) = request.subscriptions
        sent = -1
        while True:
            found = await self.GetSeries(wanted, context)
            if len(found.steps) != sent:
                sent = len(found.steps)
                yield metrics_service_pb2.WatchSeriesResponse(
                    key=wanted.key,
                    reset=True,
                    steps=found.steps,
                    values=found.values,
                    times=found.times,
                    total_points=sent,
                )
                continue
            self._fail("WatchSeries midway")
            await self._wait()

    async def ListReports(self, request: Any, _context: Any) -> Any:
        self._enter("ListReports")
        found = [
            r for r in self.state.reports[request.trial_id] if not request.groups or r.group in request.groups
        ]
        page, token = _page(request, found)
        return metrics_service_pb2.ListReportsResponse(reports=page, next_page_token=token)

    # checkpoints

    async def GetCheckpoint(self, request: Any, _context: Any) -> Any:
        self._enter("GetCheckpoint")
        for message in self.state.checkpoints:
            if message.checkpoint_id == request.checkpoint_id:
                return checkpoints_service_pb2.GetCheckpointResponse(checkpoint=message)
        raise NotFoundError(f"there is no checkpoint {request.checkpoint_id}")

    async def ListCheckpoints(self, request: Any, _context: Any) -> Any:
        self._enter("ListCheckpoints")
        found = [
            message
            for message in reversed(self.state.checkpoints)
            if (not request.trial_ids or message.trial_id in request.trial_ids)
            and (not request.experiment_ids or message.experiment_id in request.experiment_ids)
        ]
        page, token = _page(request, found)
        return checkpoints_service_pb2.ListCheckpointsResponse(checkpoints=page, next_page_token=token)

    async def PresignDownloads(self, request: Any, _context: Any) -> Any:
        self._enter("PresignDownloads")
        return checkpoints_service_pb2.PresignDownloadsResponse()

    async def ReadFile(self, request: Any, _context: Any) -> AsyncIterator[Any]:
        self._enter("ReadFile")
        self.state.served_files.append((request.path, request.offset))
        content = self.state.files[request.checkpoint_id, request.path][request.offset :]
        for start in range(0, len(content), 1000):
            yield checkpoints_service_pb2.ReadFileResponse(data=content[start : start + 1000])
            self._fail("ReadFile midway")

    async def UpdateMetadata(self, request: Any, _context: Any) -> Any:
        self._enter("UpdateMetadata")
        (message,) = [c for c in self.state.checkpoints if c.checkpoint_id == request.checkpoint_id]
        for key, value in request.patch.map_value.fields.items():
            if value.WhichOneof("kind") == "null_value":
                del message.metadata.map_value.fields[key]
            else:
                message.metadata.map_value.fields[key].CopyFrom(value)
        return checkpoints_service_pb2.UpdateMetadataResponse(checkpoint=message)

    async def DeleteCheckpoints(self, request: Any, _context: Any) -> Any:
        self._enter("DeleteCheckpoints")
        for message in self.state.checkpoints:
            if message.checkpoint_id in request.checkpoint_ids:
                message.state = checkpoint_pb2.CHECKPOINT_STATE_DELETED
        return checkpoints_service_pb2.DeleteCheckpointsResponse()

    async def DeleteFiles(self, request: Any, _context: Any) -> Any:
        self._enter("DeleteFiles")
        self.state.globs += request.globs
        return checkpoints_service_pb2.DeleteFilesResponse()

    async def CheckStorage(self, request: Any, _context: Any) -> Any:
        self._enter("CheckStorage")
        storage = request.storage
        bucket = f"bucket {storage.bucket.bucket}/{storage.bucket.prefix}"
        step = checkpoints_service_pb2.CheckStorageResponse.Step(
            name="write",
            passed=storage.HasField("directory"),
            detail=f"directory {storage.directory.path}" if storage.HasField("directory") else bucket,
        )
        return checkpoints_service_pb2.CheckStorageResponse(steps=[step])

    # cluster, access, searcher

    async def SetTemplate(self, request: Any, _context: Any) -> Any:
        self._enter("SetTemplate")
        self.state.templates[request.name] = request.config_yaml
        return cluster_service_pb2.SetTemplateResponse()

    async def GetTemplate(self, request: Any, _context: Any) -> Any:
        self._enter("GetTemplate")
        if request.name not in self.state.templates:
            raise NotFoundError(f"there is no template {request.name!r}")
        return cluster_service_pb2.GetTemplateResponse(template=self._template(request.name))

    async def ListTemplates(self, request: Any, _context: Any) -> Any:
        self._enter("ListTemplates")
        page, token = _page(request, [self._template(name) for name in sorted(self.state.templates)])
        return cluster_service_pb2.ListTemplatesResponse(templates=page, next_page_token=token)

    async def DeleteTemplate(self, request: Any, _context: Any) -> Any:
        self._enter("DeleteTemplate")
        del self.state.templates[request.name]
        return cluster_service_pb2.DeleteTemplateResponse()

    def _template(self, name: str) -> template_pb2.Template:
        return template_pb2.Template(name=name, config=to_value(yaml.safe_load(self.state.templates[name])))

    async def CreateToken(self, request: Any, _context: Any) -> Any:
        self._enter("CreateToken")
        token = self._issue_token(self._users[request.user_id - 1])
        return access_service_pb2.CreateTokenResponse(bearer_token=token)

    async def ListUsers(self, request: Any, _context: Any) -> Any:
        self._users += [name for name in request.names if name not in self._users]
        found = [user_pb2.User(user_id=self._users.index(name) + 1, name=name) for name in request.names]
        return access_service_pb2.ListUsersResponse(users=found)

    async def GetCurrentUser(self, _request: Any, _context: Any) -> Any:
        self._enter("GetCurrentUser")
        return access_service_pb2.GetCurrentUserResponse(user=user_pb2.User(name=actor()))

    async def PreviewSearch(self, request: Any, _context: Any) -> Any:
        self._enter("PreviewSearch")
        response = searcher_service_pb2.PreviewSearchResponse(total_units=12)
        bracket = response.brackets.add(trials=request.spec.random.max_trials)
        bracket.endings.add(length=4, trials=request.spec.random.max_trials)
        return response


def _page(request: Any, found: list[Any]) -> tuple[list[Any], str]:
    start = decode_token(request) or 0
    # Small pages, so that every list is read over several.
    size = min(page_size(request.page_size), 3)
    end = start + size
    return found[start:end], encode_token(request, end) if end < len(found) else ""


def _wanted(line: line_pb2.Line, wanted: line_pb2.LineFilter) -> bool:
    return (
        line.trial_id == wanted.trial_id
        and (not wanted.ranks or (line.HasField("rank") and line.rank in wanted.ranks))
        and line.level >= wanted.min_level
        and wanted.text.lower() in line.message.lower()
        and (not wanted.regex or re.search(wanted.regex, line.message) is not None)
        and (not wanted.origins or line.origin in wanted.origins)
        and (not wanted.containers or line.container in wanted.containers)
        and (not wanted.agents or line.agent in wanted.agents)
        and (not wanted.HasField("end_time") or line.time.seconds < wanted.end_time.seconds)
        and (not wanted.stdtypes or line.stdtype in wanted.stdtypes)
        and (not wanted.runs or line.run in wanted.runs)
        and (not wanted.HasField("start_time") or line.time.seconds >= wanted.start_time.seconds)
    )

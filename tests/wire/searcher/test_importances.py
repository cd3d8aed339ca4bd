"""Importances over the wire: from the log, once for each state of it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from support.processes.workers import worker_processes
from support.services.searcher import SearchSession, run, searcher, space, spec

from resolute.api.searcher.v1 import search_spec_pb2 as spec_pb
from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute.contracts.values import to_mapping
from resolute.errors import FailedPreconditionError, NotFoundError
from resolute_searcher.servicers import importances

_PATIENCE = 240.0
_AXIS = spec_pb.Hyperparameter(double_range=spec_pb.DoubleRange(minval=-1, maxval=1))
_ASKED = spec(
    random=spec_pb.RandomMethod(max_length=5, max_trials=30, max_concurrent_trials=30),
    space=space(x=_AXIS, y=_AXIS, one=spec_pb.Hyperparameter(int_range=spec_pb.IntRange(minval=0, maxval=1))),
)


def test_they_follow_from_the_log_and_are_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            session = SearchSession(service)
            trials = await session.trials(_ASKED)

            async def asked() -> service_pb.GetImportancesResponse:
                request = service_pb.GetImportancesRequest(search_id=session.search_id)
                return await session.client.GetImportances(request, timeout=_PATIENCE)

            early = await asked()
            assert (len(early.importances), early.trials, early.last_event_sequence) == (0, 0, 1)
            for trial in trials[:-1]:
                await session.complete(trial.trial_id, to_mapping(trial.hparams)["x"] ** 2, length=5)
            await session.complete(trials[-1].trial_id, float("nan"), length=5)

            found, again = await asyncio.gather(asked(), asked())
            assert found.importances[0].name == "x"
            assert found.importances[0].share > 0.8
            assert (found.trials, found.trials_with_result, found.omitted_hparams) == (29, 29, 0)
            assert found.last_event_sequence == (await session.search()).status.last_event_sequence
            assert again == found
            # The process that made them is not needed for what is known.
            for process in worker_processes():
                os.kill(process, signal.SIGKILL)
            assert await asked() == found

    run(scenario, deadline=2 * _PATIENCE)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importances, "_NEEDED", ("optuna", "a_library_that_is_not_here"))

    async def scenario() -> None:
        async with searcher(tmp_path) as service:
            session = SearchSession(service)
            await session.create(_ASKED)
            request: Any = service_pb.GetImportancesRequest(search_id=session.search_id)
            needed = r"need a_library_that_is_not_here .*install resolute-train\[search\]"
            with pytest.raises(FailedPreconditionError, match=needed):
                await session.client.GetImportances(request)
            unknown = service_pb.GetImportancesRequest(search_id=session.search_id.replace("5", "6"))
            with pytest.raises(NotFoundError):
                await session.client.GetImportances(unknown)

    run(scenario)

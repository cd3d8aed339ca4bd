"""The RPCs about searches that do not exist: what a spec would run."""

from __future__ import annotations

from typing import Any

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.identifiers import invalid_field
from resolute_searcher.planning.curves import RecordedCurve
from resolute_searcher.planning.preview import preview
from resolute_searcher.planning.simulation import Simulation, run_simulation
from resolute_searcher.servicers.base import BaseCalls
from resolute_searcher.wire.contract import stored_spec
from resolute_searcher.wire.spec import spec_from

MAX_SIMULATED_TRIALS = 50_000
"""Most trials of a simulation over the network; the library has no limit."""


class PlanningCalls(BaseCalls):
    """Answers the calls about searches that do not exist."""

    async def PreviewSearch(
        self, request: service_pb.PreviewSearchRequest, context: Any
    ) -> service_pb.PreviewSearchResponse:
        """Returns what a spec would run."""
        result = preview(spec_from(stored_spec(request.spec)))
        brackets = [
            service_pb.PreviewSearchResponse.Bracket(
                trials=bracket.trials,
                concurrent_trials=bracket.concurrent_trials or None,
                endings=[
                    service_pb.PreviewSearchResponse.Ending(length=length or None, trials=trials)
                    for length, trials in bracket.endings
                ],
            )
            for bracket in result.brackets
        ]
        return service_pb.PreviewSearchResponse(brackets=brackets, total_units=result.total_units)

    async def SimulateSearch(
        self, request: service_pb.SimulateSearchRequest, context: Any
    ) -> service_pb.SimulateSearchResponse:
        """Plays a spec in virtual time, in a process of its own."""
        stored = stored_spec(request.spec)
        spec = spec_from(stored)
        trials = sum(bracket.trials for bracket in preview(spec).brackets)
        if trials > MAX_SIMULATED_TRIALS:
            raise invalid_field(
                "spec", f"has {trials} trials; up to {MAX_SIMULATED_TRIALS} can be simulated over the network"
            )
        if request.HasField("slots") and request.slots < 1:
            raise invalid_field("slots", f"must be at least 1, not {request.slots}")
        curves = [RecordedCurve(tuple(curve.lengths), tuple(curve.metrics)) for curve in request.curves]
        for number, curve in enumerate(curves):
            curve.check(f"curves[{number}]")
        message = stored.SerializeToString()
        return _response(await self.process_pool.run(run_simulation, message, curves, request.slots))


def _response(result: Simulation) -> service_pb.SimulateSearchResponse:
    rungs = [
        service_pb.SimulateSearchResponse.Rung(
            bracket=rung.bracket, length=rung.length, reached=rung.reached, ended=rung.ended
        )
        for rung in result.rungs
    ]
    return service_pb.SimulateSearchResponse(
        rungs=rungs,
        total_units=result.total_units,
        duration=result.duration,
        events=result.events,
        trial_brackets=[trial.bracket for trial in result.trials],
        trial_lengths=[trial.length for trial in result.trials],
        trial_metrics=[trial.metric for trial in result.trials],
        trial_starts=[trial.start for trial in result.trials],
        trial_ends=[trial.end for trial in result.trials],
    )

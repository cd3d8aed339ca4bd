"""Builds and serializes the responses of long calculations, in worker processes."""

from __future__ import annotations

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.identifiers import invalid_field
from resolute_searcher.planning.curves import RecordedCurve, RecordedCurves, synthetic_curves
from resolute_searcher.planning.importance import estimate, trial_results
from resolute_searcher.planning.preview import preview
from resolute_searcher.planning.simulation import Simulation, simulate
from resolute_searcher.spec.search import PluginSpec, SearchSpec
from resolute_searcher.spec.sizes import check_size
from resolute_searcher.store import log, search_rows
from resolute_searcher.wire.spec import spec_from
from resolute_serving.database.engine import create_engine, typed_errors

MAX_SIMULATED_TRIALS = 50_000
"""Most trials of a simulation over the network; the library has no limit."""


def preview_answer(data: bytes) -> bytes:
    """Previews the trials of a spec, from a serialized request to a serialized response.

    Raises:
        InvalidArgumentError: The spec is wrong.
    """
    result = preview(_spec(service_pb.PreviewSearchRequest.FromString(data)))
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
    response = service_pb.PreviewSearchResponse(brackets=brackets, total_units=result.total_units)
    return response.SerializeToString()


def simulation_answer(data: bytes) -> bytes:
    """Simulates a spec in virtual time, from a serialized request to a serialized response.

    Raises:
        InvalidArgumentError: The spec or a curve is wrong, or there are too many trials.
    """
    request = service_pb.SimulateSearchRequest.FromString(data)
    spec = _spec(request)
    # What a plugin creates is known only while it is simulated.
    plugged = isinstance(spec.method, PluginSpec)
    trials = 0 if plugged else sum(bracket.trials for bracket in preview(spec).brackets)
    if trials > MAX_SIMULATED_TRIALS:
        raise invalid_field(
            "spec", f"has {trials} trials; up to {MAX_SIMULATED_TRIALS} can be simulated over the network"
        )
    if request.HasField("slots") and request.slots < 1:
        raise invalid_field("slots", f"must be at least 1, not {request.slots}")
    recorded = [RecordedCurve(tuple(curve.lengths), tuple(curve.metrics)) for curve in request.curves]
    for number, curve in enumerate(recorded):
        curve.check(f"curves[{number}]")
    curves = RecordedCurves(recorded) if recorded else synthetic_curves(spec)
    result = simulate(spec, curves, slots=request.slots, most_trials=MAX_SIMULATED_TRIALS)
    return _simulation_response(result).SerializeToString()


def _spec(request: service_pb.PreviewSearchRequest | service_pb.SimulateSearchRequest) -> SearchSpec:
    spec = spec_from(request.spec)
    check_size(spec)
    return spec


def _simulation_response(result: Simulation) -> service_pb.SimulateSearchResponse:
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


def importance_answer(database_url: str, search_id: str) -> bytes:
    """Estimates importances from the log of a search; returns a serialized response.

    Args:
        database_url: Where the log is.
        search_id: The search.

    Raises:
        NotFoundError: There is no such search.
    """
    engine = create_engine(database_url, name="searcher", writes=False)
    try:
        with typed_errors("searcher"), engine.begin() as connection:
            row = search_rows.read_search(connection, search_id)
            spec = spec_from(row.spec)
            entries = (recorded.entry for recorded in log.read_log(connection, search_id))
            results = trial_results(entries, smaller_is_better=spec.smaller_is_better)
    finally:
        engine.dispose()
    estimated = estimate(results, spec.space)
    return service_pb.GetImportancesResponse(
        importances=[
            service_pb.GetImportancesResponse.Importance(
                name=importance.name, share=importance.share, error=importance.error
            )
            for importance in estimated.importances
        ],
        trials=estimated.trials,
        trials_with_result=len(results),
        omitted_hparams=estimated.omitted,
        last_event_sequence=row.last_sequence,
    ).SerializeToString()

"""The answer to how much hyperparameters matter in a search, made in a worker process."""

from __future__ import annotations

from resolute.api.searcher.v1 import searcher_service_pb2 as service_pb
from resolute_searcher.planning.importance import estimate
from resolute_searcher.planning.trial_results import trial_results
from resolute_searcher.store import log, search_rows
from resolute_searcher.wire.spec import spec_from
from resolute_serving.database.engine import create_engine, typed_errors


def importance_answer(database_url: str, search_id: str) -> bytes:
    """Estimates importances from the log of a search; gives a serialized response.

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
    found = estimate(results, spec.space)
    return service_pb.GetImportancesResponse(
        importances=[
            service_pb.GetImportancesResponse.Importance(name=one.name, share=one.share, error=one.error)
            for one in found.importances
        ],
        trials=found.trials,
        trials_with_result=len(results),
        omitted_hparams=found.omitted,
        last_event_sequence=row.last_sequence,
    ).SerializeToString()

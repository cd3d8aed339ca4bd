"""The lost steps of a run: steps that were trained after its last checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.errors import ResoluteError
from resolute_experiments.clients import Clients
from resolute_experiments.exits.policy import KILLED, TERMINATED, Exit
from resolute_experiments.store.runs import Run

_DEADLINE_SECONDS = 10.0
_log = structlog.get_logger("steps")


async def reached_steps(run: Run, *, clients: Clients) -> int | None:
    """Finds the last step that a run reported a metric at.

    Args:
        run: A run that has ended.
        clients: Reach the metrics service.

    Returns:
        The step; 0 when the run reported nothing, None when the metrics service did not answer.
    """
    request = metrics_service_pb2.ListLastStepsRequest(trial_ids=[run.trial_id])
    try:
        found = (await clients.metrics.ListLastSteps(request, timeout=_DEADLINE_SECONDS)).trials
    except ResoluteError as failure:
        _log.warning(
            "how many steps are lost is not known", allocation=run.allocation_id, reason=str(failure)
        )
        return None
    return next((int(found_steps.steps) for found_steps in found if found_steps.run == run.run), 0)


def barren_ends(run: Run, exit_: Exit, *, kept_steps: int, earlier: Sequence[Run]) -> int:
    """Counts how often in a row runs of a trial ended unannounced without a checkpoint of a later step.

    Args:
        run: The run that has ended, as it was before its end is written.
        exit_: How its processes ended.
        kept_steps: Steps of the trial's latest checkpoint.
        earlier: The runs of the trial before it, by number.

    Returns:
        The number with this run; zero if it was announced, or left a checkpoint of a later step.
    """
    count, later = 0, kept_steps
    codes = [None if exit_.lost else exit_.exit_code, *(past.exit_code for past in reversed(earlier))]
    began_at = [*(past.kept_steps for past in reversed(earlier)), 0]
    for one, code, began in zip([run, *reversed(earlier)], codes, began_at, strict=True):
        if one.preempt or code not in {None, KILLED, TERMINATED} or began != later:
            break
        count, later = count + 1, began
    return count

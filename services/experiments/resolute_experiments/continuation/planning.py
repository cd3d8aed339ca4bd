"""Plans the continuation of an experiment, and records it.

The plan is recorded together with the experiment's new state; its controller carries it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute.errors import FailedPreconditionError, InvalidConfigError, Violation
from resolute_experiments.specs.search import length_of
from resolute_experiments.states import (
    ENDED_EXPERIMENTS,
    EXPERIMENTS,
    ExperimentEvent,
    ExperimentState,
    RunOutcome,
    TrialState,
)
from resolute_experiments.store import audit, continuations, experiments, runs
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.trials import Trial
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_experiment
from resolute_experiments.unmanaged.tracking import require_managed

_FIXED = ("hyperparameters", "searcher", "reproducibility", "checkpoint_storage", "workspace", "project")
"""Sections by which the search decided, or by which what there is is found."""
_GROWING = ("searcher.max_trials", "searcher.max_length", "searcher.max_time")
"""Fields of these sections that may grow."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The planned continuation of an experiment."""

    config: dict[str, Any]
    """Its config from now on."""
    changed: tuple[str, ...] = ()
    """Fields of the config that change, by their paths."""
    max_trials: int | None = None
    """Trials of its search from now on; None for as many as before."""
    max_length: int | None = None
    """Length (or time) of its longest trial from now on; None for the one before."""
    trials: tuple[Trial, ...] = ()
    """Trials that are tried again."""
    resource_pool: str = ""
    """The pool that it runs in from now on; empty for the default one."""

    @property
    def extends(self) -> bool:
        """Whether its search is given more to do."""
        return self.max_trials is not None or self.max_length is not None


def plan(
    experiment: Experiment,
    config: dict[str, Any],
    trials: Sequence[Trial],
    *,
    resource_pool: str | None = None,
) -> Plan:
    """Returns what an experiment would continue with.

    Args:
        experiment: The experiment.
        config: Its config with the overrides, whole and checked.
        trials: All of its trials.
        resource_pool: The pool of that config; None for the one before.

    Raises:
        IllegalTransitionError: It is ending, or is being removed.
        FailedPreconditionError: There is nothing to continue with, its search is under way, or others run it.
        InvalidConfigError: The overrides change what cannot change any more.
    """
    require_managed(experiment, "continued")
    EXPERIMENTS.step(experiment.state, ExperimentEvent.CONTINUE, resource=experiment.label)
    changed = tuple(_differences(experiment.config, config))
    _check_changes(experiment, config, changed)
    searcher = config["searcher"]
    planned = Plan(
        config=config,
        changed=changed,
        max_trials=searcher["max_trials"] if "searcher.max_trials" in changed else None,
        max_length=_limit(searcher) if _grows_longer(changed) else None,
        trials=tuple(trial for trial in trials if _is_tried_again(trial, experiment.state)),
        resource_pool=experiment.resource_pool if resource_pool is None else resource_pool,
    )
    _check_has_effect(experiment, planned)
    return planned


def begin(
    connection: Connection, experiment: Experiment, planned: Plan, *, continuation_id: str, timing: Timing
) -> None:
    """Lets the experiment be active again, and notes what its controller must carry out.

    Raises:
        QuotaError: Its workspace would use more than it may.
    """
    config = planned.config
    transition_experiment(
        connection,
        experiment,
        ExperimentEvent.CONTINUE,
        timing,
        config=config,
        edit_revision=experiment.edit_revision + 1,
        name=config["name"],
        description=config["description"] or "",
        labels=list(config["labels"]),
        resource_pool=planned.resource_pool,
        **_requeued(experiment.config, config),
    )
    continuations.insert(
        connection,
        {
            "request_id": continuation_id,
            "experiment_id": experiment.id,
            "previous_state": experiment.state.value,
            "previous_config": experiment.config,
            "max_trials": planned.max_trials,
            "max_length": planned.max_length,
            # Anyone who has work to do comes first: a search may close those that rest once none works.
            "trial_ids": [
                trial.id for trial in sorted(planned.trials, key=lambda trial: _was_idle(connection, trial))
            ],
        },
    )
    audit.record(
        connection,
        "continue",
        experiment.label,
        now=timing.now,
        from_state=experiment.state.value,
        trials=[trial.number for trial in planned.trials],
        changed=list(planned.changed),
    )


def _requeued(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Returns what the overrides say of the queue; what was changed there since stays."""
    known = experiments.queue_columns(before)
    return {name: value for name, value in experiments.queue_columns(after).items() if value != known[name]}


def _was_idle(connection: Connection, trial: Trial) -> bool:
    """Whether it had done what was asked of it when it was cancelled."""
    history = runs.of_trial(connection, trial.id)
    return bool(history) and history[-1].outcome is RunOutcome.COMPLETED


def _is_tried_again(trial: Trial, state: ExperimentState) -> bool:
    """Anyone who failed; and anyone who was cancelled because the experiment as a whole was to end."""
    if trial.state is TrialState.ERROR:
        return True
    whole = state in {ExperimentState.CANCELED, ExperimentState.ERROR}
    return whole and trial.state is TrialState.CANCELED


def _check_has_effect(experiment: Experiment, planned: Plan) -> None:
    if planned.extends and experiment.state not in ENDED_EXPERIMENTS:
        raise FailedPreconditionError(
            f"the search of {experiment.label} is under way; give it more once it has ended",
            resource=experiment.label,
        )
    # A paused or cancelled search has more to do by itself; one that was never made is made.
    goes_on = experiment.state in {ExperimentState.PAUSED, ExperimentState.CANCELED}
    if planned.trials or planned.extends or goes_on or not experiment.search_created:
        return
    raise FailedPreconditionError(
        f"{experiment.label} has nothing to continue with: none of its trials failed; "
        "give it more with --config searcher.max_trials=N or searcher.max_length, "
        "or begin a new experiment from one of its trials with `resolute trial continue`",
        resource=experiment.label,
    )


def _check_changes(experiment: Experiment, config: Mapping[str, Any], changed: Sequence[str]) -> None:
    faults = [
        Violation(path, "it cannot change in an experiment that goes on; fork the experiment instead")
        for path in changed
        if path.split(".")[0] in _FIXED and not _is_growing(path)
    ]
    before, after = experiment.config["searcher"], config["searcher"]
    if not faults:
        faults = list(_shrinking(before, after, changed))
    if faults:
        listed = "".join(f"\n  {fault.field}: {fault.description}" for fault in faults)
        raise InvalidConfigError(
            f"the changes to {experiment.label} cannot be made:{listed}", violations=faults
        )


def _shrinking(
    before: Mapping[str, Any], after: Mapping[str, Any], changed: Sequence[str]
) -> Iterator[Violation]:
    if "searcher.max_trials" in changed and (before.get("max_trials") or 0) >= (after["max_trials"] or 0):
        yield _must_grow("searcher.max_trials", before.get("max_trials"), after["max_trials"])
    if not _grows_longer(changed):
        return
    field = "searcher.max_time" if after.get("time_metric") else "searcher.max_length"
    if _limit(before) is None or _limit(after) is None:
        yield Violation(field, "it cannot be added or removed: trials without one end by themselves")
    elif _unit(before) != _unit(after):
        yield Violation(field, f"expected a length in {_unit(before) or 'the same unit'}, as it began with")
    elif (_limit(after) or 0) <= (_limit(before) or 0):
        yield _must_grow(field, _limit(before), _limit(after))


def _must_grow(field: str, before: int | None, after: int | None) -> Violation:
    return Violation(field, f"found {after}; expected more than the {before} that the search has")


def _is_growing(path: str) -> bool:
    return any(path == field or path.startswith(f"{field}.") for field in _GROWING)


def _grows_longer(changed: Sequence[str]) -> bool:
    return any(_is_growing(path) and path != "searcher.max_trials" for path in changed)


def _limit(searcher: Mapping[str, Any]) -> int | None:
    if searcher.get("time_metric"):
        return int(searcher["max_time"])
    return length_of(searcher)


def _unit(searcher: Mapping[str, Any]) -> str:
    length = searcher.get("max_length")
    return str(next(iter(length))) if isinstance(length, Mapping) else ""


def _differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yields the paths at which two configs differ, in order."""
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        if before != after:
            yield path
        return
    for name in sorted({*before, *after}):
        yield from _differences(before.get(name), after.get(name), f"{path}.{name}" if path else str(name))

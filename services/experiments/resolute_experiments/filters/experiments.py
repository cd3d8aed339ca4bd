"""Filters of experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from resolute.contracts.documents.rejections import suggestion
from resolute_experiments.filters import fields
from resolute_experiments.filters.fields import Condition, Fields
from resolute_experiments.filters.hyperparameters import compare_hyperparameter, has_hyperparameter
from resolute_experiments.filters.syntax import Comparison, Group, Negation, Node
from resolute_experiments.states import ExperimentState, TrialState
from resolute_experiments.store.schema import experiments, trials
from resolute_serving.database.text_search import any_element, contains

_RUNNING = (TrialState.STARTING, TrialState.RUNNING, TrialState.STOPPING)
_TRUTHS = {"yes": True, "true": True, "no": False, "false": False}
_PREFIXES = ("validation/", "metrics.", "metric.")
_HPARAMS = ("hparams.", "hyperparameters.")


@dataclass(frozen=True)
class Asking:
    """The context of a filter: its user, workspace and time."""

    caller: str
    """Name of the user; what ``owner = me`` means."""
    dialect: str
    now: float


def condition_of(node: Node, asking: Asking) -> Condition:
    """What the database checks of an experiment.

    Raises:
        InvalidArgumentError: Something in the filter cannot be compared so.
    """
    return _fields(asking).condition(node)


def names_archived(node: Node | None) -> bool:
    """Whether a filter says itself whether archived experiments are wanted."""
    match node:
        case Comparison(name):
            return name.lower() == "archived"
        case Negation(part):
            return names_archived(part)
        case Group(parts):
            return any(map(names_archived, parts))
    return False


def check_names(connection: Connection, node: Node, asking: Asking) -> None:
    """Refuses names that are no field, and that no metric of a search and no hyperparameter has.

    Raises:
        InvalidArgumentError: It has one.
    """
    known = _fields(asking).known
    for comparison in _comparisons(node):
        name, place = _bare(comparison.name)
        if comparison.name.lower() in known or _exists(connection, name, place, asking.dialect):
            continue
        problem = (
            "there is no such field, no search goes by such a metric and no trial has such a hyperparameter;"
        )
        advice = f"fields are {', '.join(sorted(known))}"
        raise comparison.wrong(
            " ".join(filter(None, (problem, suggestion(comparison.name.lower(), known), advice)))
        )


def _fields(asking: Asking) -> Fields:
    columns = experiments.c
    return Fields(
        known={
            "id": fields.number(columns.number),
            "name": fields.text(columns.name),
            "description": fields.text(columns.description),
            "notes": fields.text(columns.notes),
            "state": fields.choice(_states()),
            "label": _label,
            "owner": _owner(asking.caller),
            "user": _owner(asking.caller),
            "workspace": fields.text(columns.workspace),
            "project": fields.text(columns.project),
            "archived": _archived,
            "created": fields.moment(columns.created_at, now=asking.now),
            "started": fields.moment(columns.started_at, now=asking.now),
            "ended": fields.moment(columns.ended_at, now=asking.now),
            "progress": fields.number(columns.progress),
            "trials": fields.number(_trial_count()),
            "metric": fields.text(columns.metric),
            "best": fields.number(columns.best_value),
            "pool": fields.text(columns.resource_pool),
        },
        other=partial(_other, dialect=asking.dialect),
        text=lambda text: contains(columns.name, text),
    )


def _bare(name: str) -> tuple[str, str]:
    """A name without its prefix, and what that says the name is of; empty for either."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix), "metric"
    for prefix in _HPARAMS:
        if name.startswith(prefix):
            return name.removeprefix(prefix), "hyperparameter"
    return name, ""


def _other(asked: Comparison, *, dialect: str) -> Condition:
    name, place = _bare(asked.name)
    alternatives: list[Condition] = []
    if place != "hyperparameter" and fields.as_number(asked.value) is not None and asked.operator != "~":
        best = fields.number(experiments.c.best_value)(asked)
        alternatives.append(
            sa.and_(experiments.c.metric == name, experiments.c.best_value.is_not(None), best)
        )
    if place != "metric":
        of_trial = compare_hyperparameter(asked, name, dialect=dialect)
        alternatives.append(_some_trial(of_trial))
    if not alternatives:
        raise asked.wrong("compare a metric by = != < <= > >= with a number")
    return sa.or_(*alternatives)


def _some_trial(condition: Condition) -> Condition:
    own = trials.c.experiment_id == experiments.c.id
    return sa.exists(
        sa.select(sa.literal(1)).select_from(trials).where(own, condition).correlate(experiments)
    )


def _states() -> dict[str, Condition]:
    """What each word for a state means."""
    active = _is_in(ExperimentState.ACTIVE)
    return {
        "running": sa.and_(active, _some_trial(trials.c.state.in_([state.value for state in _RUNNING]))),
        "active": active,
        "paused": _is_in(ExperimentState.PAUSED),
        "stopping": _is_in(*(state for state in ExperimentState if state.value.startswith("STOPPING"))),
        "completed": _is_in(ExperimentState.COMPLETED),
        "canceled": sa.and_(_is_in(ExperimentState.CANCELED), sa.not_(experiments.c.killed)),
        "killed": experiments.c.killed,
        "failed": _is_in(ExperimentState.ERROR),
        "error": _is_in(ExperimentState.ERROR),
        "deleted": _is_in(ExperimentState.DELETED),
    }


def _is_in(*states: ExperimentState) -> Condition:
    return experiments.c.state.in_([state.value for state in states])


def _owner(caller: str) -> fields.Field:
    own: Callable[[Comparison], Condition] = fields.text(experiments.c.owner)

    def compare(asked: Comparison) -> Condition:
        if asked.value != "me" or asked.operator == "~":
            return own(asked)
        return own(Comparison(asked.name, asked.operator, caller, asked.position))

    return compare


def _archived(asked: Comparison) -> Condition:
    if asked.operator in {"=", "!="} and asked.value.lower() == "any":
        return sa.true()
    wanted = _TRUTHS.get(asked.value.lower())
    if wanted is None or asked.operator not in {"=", "!="}:
        raise asked.wrong("compare it by = with yes, no or any")
    return experiments.c.archived == (wanted if asked.operator == "=" else not wanted)


def _label(asked: Comparison) -> Condition:
    if asked.operator not in {"=", "!=", "~"}:
        raise asked.wrong("a label is compared by =, != or ~ (contains)")
    found = any_element(
        experiments.c.labels,
        lambda value: contains(value, asked.value) if asked.operator == "~" else value == asked.value,
    )
    return sa.not_(found) if asked.operator == "!=" else found


def _trial_count() -> sa.ColumnElement[int]:
    counted = sa.select(sa.func.count()).where(trials.c.experiment_id == experiments.c.id)
    return counted.correlate(experiments).scalar_subquery()


def _comparisons(node: Node) -> list[Comparison]:
    match node:
        case Comparison():
            return [node]
        case Negation(part):
            return _comparisons(part)
        case Group(parts):
            return [each for part in parts for each in _comparisons(part)]
    return []


def _exists(connection: Connection, name: str, place: str, dialect: str) -> bool:
    queries = []
    if place != "hyperparameter":
        queries.append(sa.select(experiments.c.number).where(experiments.c.metric == name))
    if place != "metric":
        queries.append(sa.select(trials.c.number).where(has_hyperparameter(name, dialect=dialect)))
    return any(connection.execute(query.limit(1)).first() is not None for query in queries)

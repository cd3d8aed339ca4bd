"""Raises alerts in the transaction of their cause: one delivery for each endpoint that a rule names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy.engine import Connection

from resolute_experiments.alerts.alert import Alert
from resolute_experiments.store import alerts, experiments
from resolute_experiments.store.alerts import CLUSTER, StoredRules
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.trials import Trial


def raise_of_experiment(connection: Connection, alert: Alert, experiment: Experiment) -> None:
    """Raises an alert about an experiment or its trials, by the rules of its workspace and of the cluster."""
    stored = alerts.rules(connection, {experiment.workspace_id, CLUSTER})
    if stored:
        put(connection, alert, endpoints_of(stored, alert, experiment.config))


def put(connection: Connection, alert: Alert, endpoints: Iterable[tuple[int, str]]) -> None:
    """Writes the deliveries of an alert; what an endpoint received under its key is not sent again."""
    alerts.put(connection, key=alert.key, alert=alert.stored(), endpoints=endpoints, now=alert.time)


def endpoints_of(
    stored: Iterable[StoredRules], alert: Alert, config: Mapping[str, Any]
) -> list[tuple[int, str]]:
    """The endpoints that rules lead to, by workspace and name.

    Args:
        stored: The rules.
        alert: What is sent.
        config: Of the experiment: its ``integrations.webhooks`` may name endpoints, or exclude all.
    """
    webhooks = (config.get("integrations") or {}).get("webhooks") or {}
    if webhooks.get("exclude"):
        return []
    named = set(webhooks.get("webhook_name") or ())
    found: dict[tuple[int, str], None] = {}
    for document in stored:
        for rule in document.rules:
            for name in rule["to"] if _applies(rule, alert) else ():
                if name not in document.only_named or name in named:
                    found[document.workspace_number, name] = None
    return list(found)


def raise_of_state(
    connection: Connection,
    experiment_id: str,
    state: str,
    *,
    now: float,
    trial: Trial | None = None,
    detail: str = "",
) -> None:
    """Raises the alert that an experiment, or a trial of it, has come into a state.

    Args:
        connection: The transaction in which it has.
        experiment_id: The experiment.
        state: The state.
        now: Unix seconds.
        trial: The trial; None for the experiment itself.
        detail: Why, for people.
    """
    if not alerts.any_rules(connection):
        return
    experiment = experiments.get(connection, experiment_id=experiment_id)
    subject = f"Experiment {experiment.number}" if trial is None else f"Trial {trial.number}"
    of = "" if trial is None else f" of experiment {experiment.number}"
    alert = Alert(
        key=f"{experiment_id if trial is None else trial.id}-{state}-{experiment.revision}",
        on="experiment" if trial is None else "trial",
        title=f"{subject}{of} ({experiment.name}): {state}",
        text=detail or f"{subject}{of} ({experiment.name}) is {state}.",
        level="error" if state == "ERROR" else "info",
        time=now,
        link=f"experiments/{experiment.number}" if trial is None else f"trials/{trial.number}",
        experiment=experiment.number,
        trial=None if trial is None else trial.number,
        state=state,
    )
    raise_of_experiment(connection, alert, experiment)


def raise_of_log_policies(
    connection: Connection, trial: Trial, run: int, notes: Iterable[str], *, now: float
) -> None:
    """Raises the alert that log policies matched lines of a run, with what they noted."""
    key, text = f"{trial.id}-log-policy-{run}", "\n".join(notes)
    _raise_of_run(connection, trial, key=key, on="log_policy", about="its log", text=text, now=now)


def raise_of_hang(connection: Connection, trial: Trial, text: str, *, now: float) -> None:
    """Raises the alert that nothing of a trial's run moves, with what keeps it."""
    key = f"{trial.id}-hang-{trial.revision}"
    _raise_of_run(connection, trial, key=key, on="hang", about="it does not move", text=text, now=now)


def raise_of_guard(connection: Connection, trial: Trial, text: str, *, now: float) -> None:
    """Raises the alert that a guard found a bad report, with what follows."""
    key = f"{trial.id}-guard-{trial.revision}"
    _raise_of_run(connection, trial, key=key, on="guard", about="a bad report", text=text, now=now)


def raise_of_idle(connection: Connection, trial: Trial, text: str, *, now: float) -> None:
    """Raises the alert that the GPUs of a trial do too little."""
    key = f"{trial.id}-idle-{trial.revision}"
    _raise_of_run(connection, trial, key=key, on="idle", about="its GPUs are idle", text=text, now=now)


def raise_of_lost_node(connection: Connection, trial: Trial, text: str, *, now: float) -> None:
    """Raises the alert that a run was lost with its machine, or with its supervisor."""
    key, about = f"{trial.id}-lost-{trial.run}", "its machine was lost"
    _raise_of_run(connection, trial, key=key, on="node_lost", about=about, text=text, now=now)


def _raise_of_run(
    connection: Connection, trial: Trial, *, key: str, on: str, about: str, text: str, now: float
) -> None:
    if not alerts.any_rules(connection):
        return
    experiment = experiments.get(connection, experiment_id=trial.experiment_id)
    alert = Alert(
        key=key,
        on=on,
        title=f"Trial {trial.number} of experiment {experiment.number} ({experiment.name}): {about}",
        text=text,
        level="warn",
        time=now,
        link=f"trials/{trial.number}",
        experiment=experiment.number,
        trial=trial.number,
    )
    raise_of_experiment(connection, alert, experiment)


def rules_on(stored: Iterable[StoredRules], on: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rules for one kind of event, each with its workspace."""
    return (
        (document.workspace_number, rule)
        for document in stored
        for rule in document.rules
        if rule["on"] == on
    )


def _applies(rule: Mapping[str, Any], alert: Alert) -> bool:
    return bool(rule["on"] == alert.on and (not alert.state or alert.state in rule["states"]))

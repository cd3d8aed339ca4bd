"""``resolute explain trial|experiment``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

import click

from resolute.cli.display.local_time import local_time
from resolute.cli.display.output import Column, Format, format_option, print_fields, print_items, print_json
from resolute.cli.insight.sentences import because, decided, happened, moved
from resolute.cli.options.identifiers import EXPERIMENT, TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.insight.experiments import ExperimentExplanation, OpenTrial, explain_experiment
from resolute.client.insight.trials import TrialExplanation, explain_trial
from resolute.client.schema.states import TrialState

_LONG_AGO = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class _Line:
    """One event or decision, as a row of the table."""

    time: datetime | None
    what: str
    why: str


_LINE_COLUMNS: tuple[Column[_Line], ...] = (
    Column("Time", lambda line: line.time),
    Column("What", lambda line: line.what),
    Column("Why", lambda line: line.why),
)


def _next(one: OpenTrial) -> str:
    if one.closed:
        return "ends"
    if one.completed:
        return f"reached length {one.length}; waits for a decision of the search"
    return (
        "trains until its code or the search ends it"
        if one.length is None
        else f"trains to length {one.length}"
    )


_OPEN_COLUMNS: tuple[Column[OpenTrial], ...] = (
    Column("Trial", lambda one: one.trial, right=True),
    Column("State", lambda one: one.state),
    Column("Next", _next),
    Column("Waits for", lambda one: one.waits),
)


@click.command()
@click.argument("trial_id", metavar="ID", type=TRIAL)
@format_option
@click.pass_obj
def trial(settings: Settings, trial_id: str, output: Format) -> None:
    """Explain why trial ID exists, and why it was stopped, promoted, paused or waits.

    Everything is shown as it was recorded when it was decided.
    """
    answer = explain_trial(settings.services(), trial_id)
    if output is Format.JSON:
        print_json(answer)
        return
    lines = _lines(answer)
    if output is Format.TABLE:
        click.secho(f"Trial {answer.trial.id} of experiment {answer.trial.experiment_id}", bold=True)
        print_fields(
            [
                ("State", answer.trial.state),
                ("Why it exists", because(answer.origin) if answer.origin else ""),
                ("Why in this state", _current(answer)),
            ]
        )
        click.echo()
        if not answer.transitions:
            click.echo(
                "its changes of state were not recorded: it ran before the cluster was upgraded", err=True
            )
    print_items(lines, _LINE_COLUMNS, output=output)


@click.command()
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@format_option
@click.pass_obj
def experiment(settings: Settings, experiment_id: str, output: Format) -> None:
    """Explain what experiment ID does next, when it is expected to end, and what waits for what."""
    explanation = explain_experiment(settings.services(), experiment_id)
    if output is Format.JSON:
        print_json(explanation)
        return
    if output is Format.TABLE:
        _show(explanation)
    print_items(explanation.open_trials, _OPEN_COLUMNS, output=output, title="Trials that have not ended")
    if output is Format.TABLE and explanation.open_count > len(explanation.open_trials):
        click.echo(f"and {explanation.open_count - len(explanation.open_trials)} more")


def _show(explanation: ExperimentExplanation) -> None:
    record, search, job = explanation.experiment, explanation.search, explanation.job
    click.secho(f"Experiment {record.id}: {record.name}", bold=True)
    slots = ""
    if job is not None:
        limit = "" if job.max_slots is None else f" of at most {job.max_slots}"
        slots = f"holds {job.held_slots}{limit}, {job.queued_trials} trials wait, priority {job.priority}"
    print_fields(
        [
            ("State", record.shown_state),
            ("Failure", record.failure),
            ("Warning", record.warning),
            ("Progress", record.shown_progress),
            ("Trials", f"{search.trials_requested} created, {search.trials_closed} closed" if search else ""),
            ("Trials to come", explanation.trials_to_come),
            ("Slots", slots),
            ("Why it waits", record.explanation),
            ("Expected end", _expected(explanation)),
        ]
    )
    click.echo()
    if explanation.recent:
        recent = [
            _Line(decision.event.time, decided(decision), because(decision))
            for decision in explanation.recent
        ]
        print_items(recent, _LINE_COLUMNS, output=Format.TABLE, title="Last decisions of the search")
        click.echo()


def _expected(explanation: ExperimentExplanation) -> str:
    if explanation.expected_end is None:
        return ""
    return f"{local_time(explanation.expected_end)}, if it goes on at its pace so far"


def _current(explanation: TrialExplanation) -> str:
    """Why a trial is where it is."""
    record, last, request = explanation.trial, explanation.last_decision, explanation.last_request
    if record.state in (TrialState.PAUSED, TrialState.CANCELED) and request is not None:
        return moved(request)
    if record.state is TrialState.COMPLETED and last is not None and last.kind in ("close", "stop"):
        return because(last)
    if record.explanation:
        return record.explanation
    if record.state is TrialState.WAITING and explanation.reports:
        return f"{happened(explanation.reports[-1])}; the search has not decided about it since"
    return moved(explanation.transitions[-1]) if explanation.transitions else ""


def _lines(explanation: TrialExplanation) -> list[_Line]:
    lines = [
        _Line(decision.event.time, decided(decision), because(decision)) for decision in explanation.decisions
    ]
    lines += [
        _Line(transition.time, transition.to_state.name, moved(transition))
        for transition in explanation.transitions
    ]
    return sorted(lines, key=lambda line: line.time or _LONG_AGO)

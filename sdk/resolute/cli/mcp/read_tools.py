"""Tools that read."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from resolute.cli.display.trial_table import best_steps, best_value
from resolute.cli.insight.sentences import because, decided, moved
from resolute.cli.mcp.results import page
from resolute.client.insight.differences import RunKey, compare
from resolute.client.insight.experiments import explain_experiment
from resolute.client.insight.trials import explain_trial
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.remote.reports.logs import LineFilter
from resolute.client.schema.states import ExperimentState
from resolute.client.services import Services

Key = Annotated[int | str, Field(description="Number or UUID.")]
"""Names an experiment or a trial."""
Limit = Annotated[int, Field(ge=1, le=200)]
"""How many items are returned at most."""
_MOST_LOG_CHARACTERS = 200_000


class ReadTools:
    """Tools that read experiments, trials, searches, metrics and logs.

    Args:
        services: The cluster.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def list_experiments(
        self,
        states: list[ExperimentState] | None = None,
        owners: list[str] | None = None,
        labels: list[str] | None = None,
        name_contains: str = "",
        include_archived: bool = False,
        limit: Limit = 50,
    ) -> dict[str, Any]:
        """List experiments, newest first. Describe one to get its config."""
        wanted = ExperimentFilter(
            states=tuple(states or ()),
            owners=tuple(owners or ()),
            labels=tuple(labels or ()),
            name=name_contains,
            include_archived=include_archived,
        )
        return page("experiments", self._services.experiments.list(wanted, limit=limit + 1), limit)

    def describe_experiment(self, experiment: Key) -> dict[str, Any]:
        """Show an experiment with its config and state."""
        return {"experiment": self._services.experiments.get(experiment)}

    def list_trials(self, experiment: Key, limit: Limit = 100) -> dict[str, Any]:
        """List the trials of an experiment with hyperparameters and best validation."""
        record = self._services.experiments.get(experiment)
        trials = self._services.trials.list(record.uuid, limit=limit + 1)
        return {"metric": record.searcher_metric, **page("trials", trials, limit)}

    def describe_trial(self, trial: Key) -> dict[str, Any]:
        """Show a trial with its runs, and how they ended."""
        return {"trial": self._services.trials.get(trial)}

    def explain_experiment(self, experiment: Key) -> dict[str, Any]:
        """Explain what an experiment does next, what waits for what, and the last decisions of its search."""
        explanation = explain_experiment(self._services, str(experiment))
        recent = [f"{decided(decision)}: {because(decision)}" for decision in explanation.recent]
        return {"explanation": explanation, "recent_decisions": recent}

    def explain_trial(self, trial: Key) -> dict[str, Any]:
        """Explain why a trial exists, and why it was stopped, promoted or paused, or waits."""
        explanation = explain_trial(self._services, str(trial))
        return {
            "trial": explanation.trial,
            "decisions": [f"{decided(decision)}: {because(decision)}" for decision in explanation.decisions],
            "state_changes": [
                {"time": transition.time, "what": moved(transition), "to": transition.to_state}
                for transition in explanation.transitions
            ],
        }

    def diff_trials(self, trial_a: Key, trial_b: Key) -> dict[str, Any]:
        """Show what differs between two trials: config, hyperparameters, code, environment and metrics."""
        comparison = compare(self._services, RunKey(str(trial_a)), RunKey(str(trial_b)))
        return {"differs": comparison.differs, "comparison": comparison}

    def compare_experiments(
        self, experiments: Annotated[list[Key], Field(min_length=1, max_length=10)], limit: Limit = 50
    ) -> dict[str, Any]:
        """Compare experiments by their trials: the best first, with hyperparameters, of each experiment."""
        compared = []
        for key in experiments:
            record = self._services.experiments.get(key)
            sign = 1.0 if record.smaller_is_better else -1.0
            ranked = sorted(
                self._services.trials.list(record.uuid),
                key=lambda one: (best_value(one) is None, sign * (best_value(one) or 0.0), one.id),
            )
            rows = [
                {
                    "trial": trial.id,
                    "state": trial.state,
                    "best": best_value(trial),
                    "at_step": best_steps(trial),
                    "hyperparameters": trial.hparams,
                }
                for trial in ranked
            ]
            facts = {"experiment": record.id, "name": record.name, "state": record.shown_state}
            compared.append({**facts, "metric": record.searcher_metric, **page("trials", rows, limit)})
        return {"experiments": compared}

    def read_logs(
        self,
        trial: Key,
        tail: Annotated[int, Field(ge=1, le=1000, description="Number of lines, the newest.")] = 100,
        contains: str = "",
        run: Annotated[int, Field(ge=0, description="Only this run; 0 for all.")] = 0,
    ) -> dict[str, Any]:
        """Read the newest log lines of a trial, oldest first."""
        uuid = self._services.trials.get(trial).uuid
        wanted = LineFilter(text=contains, runs=(run,) if run else ())
        lines = list(self._services.logs.list(uuid, wanted, tail=tail))
        kept: list[dict[str, Any]] = []
        characters = 0
        for line in reversed(lines):
            characters += len(line.message)
            if kept and characters > _MOST_LOG_CHARACTERS:
                break
            kept.append({"time": line.time, "run": line.run, "rank": line.rank, "message": line.message})
        return {"lines": kept[::-1], "cut": len(kept) < len(lines)}

    def list_metrics(self, trial: Key) -> dict[str, Any]:
        """List the metrics of a trial with count, mean, minimum, maximum and last value."""
        uuid = self._services.trials.get(trial).uuid
        return page("metrics", self._services.metrics.summaries([uuid]), 500)

    def read_metric(
        self,
        trial: Key,
        metric: str,
        group: str = "validation",
        max_points: Annotated[int, Field(ge=2, le=1000)] = 200,
    ) -> dict[str, Any]:
        """Read a metric of a trial over its steps, downsampled so that extremes stay visible."""
        uuid = self._services.trials.get(trial).uuid
        points = self._services.metrics.series(uuid, group=group, name=metric, max_points=max_points)
        return {"steps": [point.steps for point in points], "values": [point.value for point in points]}

    def show_search(self, experiment: Key) -> dict[str, Any]:
        """Show how far the search of an experiment is."""
        return {"search": self._services.searches.status(self._services.experiments.get(experiment).uuid)}

    def list_queue(self, limit: Limit = 100) -> dict[str, Any]:
        """List the experiments that have not ended, in the order in which they get slots."""
        return page("jobs", self._services.jobs.list(), limit)

    def show_cluster(self) -> dict[str, Any]:
        """Show the version, slots and problems of the cluster."""
        return {"cluster": self._services.cluster.get()}

"""Tools that change something, for servers started with ``--allow-changes``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from resolute.cli.mcp.read_tools import Key
from resolute.client.services import Services


class ChangeTools:
    """Tools that change the states of experiments and trials.

    Args:
        services: The cluster.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    def pause_experiment(self, experiment: Key) -> dict[str, Any]:
        """Pause an experiment: its trials checkpoint and free their slots."""
        return {"experiment": self._services.experiments.pause(experiment)}

    def activate_experiment(self, experiment: Key) -> dict[str, Any]:
        """Resume a paused experiment from its checkpoints."""
        return {"experiment": self._services.experiments.activate(experiment)}

    def fork_experiment(
        self,
        experiment: Key,
        changes: Annotated[str, Field(description="Fields of the config to change, as YAML.")] = "",
    ) -> dict[str, Any]:
        """Submit a new experiment with the config and the code of another."""
        return {"continuation": self._services.continuations.fork(experiment, config=changes)}

    def cancel_experiment(self, experiment: Key) -> dict[str, Any]:
        """Cancel an experiment: its trials checkpoint, then stop for good."""
        return {"experiment": self._services.experiments.cancel(experiment)}

    def kill_experiment(self, experiment: Key) -> dict[str, Any]:
        """Stop an experiment at once, without a last checkpoint."""
        return {"experiment": self._services.experiments.kill(experiment)}

    def kill_trial(self, trial: Key) -> dict[str, Any]:
        """Stop a trial at once; its experiment continues."""
        return {"trial": self._services.trials.kill(trial)}

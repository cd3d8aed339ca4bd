"""What one container of a run executes: the launch spec, the launch order and the run directory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from resolute.api.experiments.v1.launch_spec_pb2 import LaunchSpec
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.contracts.run.secret_references import SecretReference, secret_references
from resolute.contracts.times import seconds_of
from resolute.contracts.values import to_mapping


@dataclass(frozen=True)
class Task:
    """The code to run, its slots and its directory."""

    spec: LaunchSpec
    """What to run, from the control plane."""
    order: LaunchOrder
    """What the resource manager specified for this machine."""
    run: RunDirectory
    """The run directory."""

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """The experiment's config."""
        return to_mapping(self.spec.config)

    @cached_property
    def secrets(self) -> tuple[SecretReference, ...]:
        """The secrets that the config names."""
        return secret_references(self.config)

    @property
    def term_grace_seconds(self) -> float:
        """Seconds between SIGTERM and SIGKILL: those of the config, else those of the machine."""
        if self.spec.HasField("termination_grace"):
            return seconds_of(self.spec.termination_grace)
        return self.order.term_grace_seconds

    @property
    def single_container(self) -> bool:
        """Whether the run has only this container."""
        return self.spec.container_count <= 1

    @property
    def distributed(self) -> bool:
        """Whether the run has several workers: several containers, or several slots in its only one."""
        return not self.single_container or len(self.order.slot_ids) > 1

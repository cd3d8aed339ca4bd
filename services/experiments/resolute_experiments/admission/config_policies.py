"""Applies the policies of the cluster and of the workspace to configs and to changes of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.contracts.priorities import DEFAULT_PRIORITY
from resolute.errors import InvalidArgumentError, InvalidConfigError, Violation
from resolute_config.layer import Layer
from resolute_experiments.store.config_policies import ConfigPolicies, Constraints

_SLOTS = ("slots_per_trial", "max_slots")


@dataclass(frozen=True)
class Enforced:
    """The policies that apply to one config."""

    policies: tuple[ConfigPolicies, ...] = ()
    """From those that win to those that yield."""

    @property
    def constraints(self) -> Constraints:
        """The limits, each from the highest policies that set it."""
        merged = Constraints()
        for policies in self.policies:
            merged = policies.constraints.under(merged)
        return merged

    def invariants(self) -> Sequence[Layer]:
        """What is merged over a config, from the highest to the lowest."""
        return [Layer(each.label, each.invariants) for each in self.policies]

    @property
    def defaults(self) -> Layer:
        """What a config gets where it says nothing of what is limited: the lowest layer."""
        limits, resources = self.constraints, {}
        if limits.max_slots is not None:
            resources["max_slots"] = limits.max_slots
        if limits.priority_limit is not None and limits.priority_limit > DEFAULT_PRIORITY:
            resources["priority"] = limits.priority_limit
        return Layer("config policies", {"resources": resources} if resources else {})

    def check_config(self, config: Mapping[str, Any]) -> None:
        """Holds a whole config to the limits.

        Raises:
            InvalidConfigError: It asks for more; the error lists every fault.
        """
        faults = list(faults_of_resources(config["resources"], self.constraints))
        if faults:
            lines = "".join(f"\n  {path}: {reason}" for path, reason in faults)
            count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
            raise InvalidConfigError(
                f"the experiment config has {count}; the submitted workload failed a resource constraint of "
                f"an admin:{lines}",
                violations=[Violation(path, reason) for path, reason in faults],
            )

    def check_change(self, asked: Mapping[str, float | None]) -> None:
        """Holds a change of a job to the limits, and to what policies set.

        Args:
            asked: New values of fields of the config's section ``resources``.

        Raises:
            InvalidArgumentError: It asks for more, or for something else than they set.
        """
        violations = [*self._other_than_set(asked), *self._beyond(asked)]
        if violations:
            raise InvalidArgumentError("; ".join(map(str, violations)), violations=violations)

    def _other_than_set(self, asked: Mapping[str, Any]) -> Iterator[Violation]:
        for name, value in asked.items():
            setting = next((each for each in self.policies if _resource(each, name) is not None), None)
            if setting is not None and _resource(setting, name) != value:
                reason = f"set by invariant config to {_resource(setting, name)} ({setting.label})"
                yield Violation(f"job.{name}", reason)

    def _beyond(self, asked: Mapping[str, Any]) -> Iterator[Violation]:
        if "max_slots" in asked and asked["max_slots"] is None and self.constraints.max_slots is not None:
            yield Violation("job.max_slots", f"no limit {_exceeds(self.constraints.max_slots)}")
        for path, reason in faults_of_resources(asked, self.constraints):
            yield Violation(path.replace("resources.", "job."), reason)


def faults_of_resources(resources: Mapping[str, Any], limits: Constraints) -> Iterator[tuple[str, str]]:
    """Yields what in a ``resources`` section is beyond limits: the path of a field, and what is wrong."""
    for name in _SLOTS:
        value = resources.get(name)
        if limits.max_slots is not None and isinstance(value, int) and value > limits.max_slots:
            yield f"resources.{name}", f"found {value}; it {_exceeds(limits.max_slots)}"
    priority, limit = resources.get("priority"), limits.priority_limit
    if limit is not None and isinstance(priority, int) and priority < limit:
        reason = f"requested priority {priority} is more urgent than {limit}, the limit set by admin"
        yield "resources.priority", reason


def _exceeds(limit: int) -> str:
    return f"exceeds limit set by admin, which is {limit} slots"


def _resource(policies: ConfigPolicies, name: str) -> Any:
    return (policies.invariants.get("resources") or {}).get(name)

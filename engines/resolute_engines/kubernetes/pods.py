"""Parses the status of a Pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from resolute.contracts.times import seconds_at
from resolute.errors import DataLossError

CONTAINER = "determined-container"
"""The container of a Pod that runs the trial, by the name under which a ``pod_spec`` speaks of it."""
SENDER = "resolute-sender"
"""The container of a Pod that sends what the trial's container left, once that has ended."""
PART_LABEL = "resolute/part"
"""Label of a Pod: its number within its group."""
GROUP_LABEL = "resolute/group"
"""Label of everything of a group: its name."""

_UNREMARKABLE = frozenset({"", "Completed", "Error", "ContainerCreating", "PodInitializing"})
"""Reasons that say no more than the state and the exit code do."""
_BLOCKING = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)
"""Why a container waits that may wait for ever."""
_OUT_OF_MEMORY = "OOMKilled"
"""Why a container ended of which the kernel killed something for lack of memory; since 1.28 it kills all."""
_DISRUPTIONS = frozenset(
    {
        "Evicted",
        "Preempting",
        "Preempted",
        "NodeLost",
        "NodeShutdown",
        "Shutdown",
        "Terminated",
        "NodeAffinity",
    }
)
"""Reasons of Pods that were ended for the cluster's sake."""


class PodState(Enum):
    """The state of a Pod."""

    QUEUED = "QUEUED"
    """It has no node yet."""
    STARTING = "STARTING"
    """It has a node, which gets its images and containers ready."""
    RUNNING = "RUNNING"
    """Its trial's container runs."""
    ENDED = "ENDED"
    """Its trial's container has ended, or the Pod itself has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A Pod with its status in Kubernetes."""

    name: str
    """Its name."""
    uid: str
    """Kubernetes' own identity of it: another Pod of the same name has another."""
    group: str
    """The group that it belongs to; empty for one without a group."""
    part: int
    """Its number within the group."""
    owner: str
    """Identity of the object that it goes with."""
    state: PodState
    """How far it is."""
    reason: str = ""
    """Why it waits or ended, in Kubernetes' words; empty where there is nothing to say."""
    began: bool = False
    """Whether its trial's container ever ran, as far as its node reported."""
    exit_code: int | None = None
    """Of one that ended, the code of its trial's container; None if that never ran or it is unknown."""
    blocked: bool = False
    """Whether it may stay so for ever, as when its image cannot be had."""
    leaving: bool = False
    """Whether Kubernetes was asked to end it: it got SIGTERM, or gets it now."""
    words: str = ""
    """Of one that ended, what its trial's container left as its last words."""
    over: bool = False
    """Whether it has ended and nothing of it sends any more."""
    sent: bool = False
    """Whether all that its trial's container left was sent."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Its labels."""
    passed_limit: str = ""
    """The memory limit that its trial's container was ended for passing; empty where it was not.

    Without a limit of its own it was its node that had no memory left."""
    ended_at: float = 0.0
    """Unix time at which its trial's container ended; zero if unknown."""
    disrupted: bool = False
    """Whether it ended, or must, for the cluster's sake: evicted, preempted, deleted, its node gone."""

    @property
    def waits(self) -> bool:
        """Whether its trial's container has not begun."""
        return self.state in {PodState.QUEUED, PodState.STARTING}


def parse_pod(manifest: Mapping[str, Any]) -> Pod:
    """Reads a Pod.

    Raises:
        DataLossError: It is none.
    """
    try:
        return _parse(manifest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataLossError(f"Kubernetes describes a Pod that cannot be read: {error!r}") from None


def _parse(manifest: Mapping[str, Any]) -> Pod:
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    labels = metadata.get("labels") or {}
    waiting, running, ended = _container_state(status)
    state = _state(manifest, running=running, ended=ended)
    leaving = "deletionTimestamp" in metadata
    disruption = _condition(status, "DisruptionTarget", "True")
    # The message of a container that ended is its own word, not Kubernetes'.
    reason = _first_reason(
        (status, disruption, {"reason": ended.get("reason")})
        if state is PodState.ENDED
        else (waiting, disruption, _condition(status, "PodScheduled", "False"), status)
    )
    return Pod(
        name=metadata["name"],
        uid=metadata["uid"],
        group=labels.get(GROUP_LABEL, ""),
        part=int(labels.get(PART_LABEL, 0)),
        owner=next((owner["uid"] for owner in metadata.get("ownerReferences") or ()), ""),
        state=state,
        reason=reason,
        began=running or bool(ended),
        exit_code=int(ended["exitCode"]) if ended and "exitCode" in ended else None,
        words=ended.get("message") or "",
        over=state is PodState.ENDED and not _sends(status),
        sent=_ended_well(status, SENDER),
        labels=labels,
        blocked=state is PodState.STARTING and bool(waiting) and waiting.get("reason") in _BLOCKING,
        leaving=leaving and state is not PodState.ENDED,
        passed_limit=_memory_limit(manifest) if ended.get("reason") == _OUT_OF_MEMORY else "",
        ended_at=seconds_at(ended.get("finishedAt")),
        disrupted=leaving or bool(disruption) or status.get("reason") in _DISRUPTIONS,
    )


def _state(manifest: Mapping[str, Any], *, running: bool, ended: Mapping[str, Any]) -> PodState:
    phase = manifest.get("status", {}).get("phase")
    # Containers that a pod_spec adds may run on: the trial is over all the same.
    if phase in {"Succeeded", "Failed"} or ended:
        return PodState.ENDED
    if running:
        return PodState.RUNNING
    return PodState.STARTING if manifest.get("spec", {}).get("nodeName") else PodState.QUEUED


def _container_state(status: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool, Mapping[str, Any]]:
    """Of the trial's container: why it waits, whether it runs, how it ended."""
    states = {each["name"]: each.get("state") or {} for each in status.get("containerStatuses") or ()}
    own = states.get(CONTAINER, {})
    waiting = own.get("waiting") or {}
    if waiting.get("reason", "") in _UNREMARKABLE:
        # A container that goes first, or one beside it, may be what does not come up.
        others = [each.get("state") or {} for each in status.get("initContainerStatuses") or ()]
        others += [state for name, state in states.items() if name != CONTAINER]
        waits = [state["waiting"] for state in others if state.get("waiting")]
        waiting = next((each for each in waits if each.get("reason") in _BLOCKING), waiting)
    return waiting, "running" in own, own.get("terminated") or {}


def _memory_limit(manifest: Mapping[str, Any]) -> str:
    """The memory limit of the trial's container, or that of its Pod."""
    spec = manifest.get("spec") or {}
    containers = (each for each in spec.get("containers") or () if each["name"] == CONTAINER)
    own: Mapping[str, Any] = next(containers, {})
    limits = [(container.get("resources") or {}).get("limits") or {} for container in (own, spec)]
    return next((str(each["memory"]) for each in limits if "memory" in each), "")


def _sends(status: Mapping[str, Any]) -> bool:
    # Those that a pod_spec adds may run for ever.
    senders = [each for each in status.get("containerStatuses") or () if each["name"] == SENDER]
    over = all((each.get("state") or {}).get("terminated") for each in senders)
    return status.get("phase") not in {"Succeeded", "Failed"} and not over


def _ended_well(status: Mapping[str, Any], name: str) -> bool:
    ends = [
        (each.get("state") or {}).get("terminated") or {}
        for each in status.get("containerStatuses") or ()
        if each["name"] == name
    ]
    return any(end.get("exitCode") == 0 for end in ends)


def _condition(status: Mapping[str, Any], kind: str, value: str) -> Mapping[str, Any]:
    conditions: Sequence[Mapping[str, Any]] = status.get("conditions") or ()
    return next((each for each in conditions if (each["type"], each["status"]) == (kind, value)), {})


def _first_reason(sources: Sequence[Mapping[str, Any]]) -> str:
    for source in sources:
        reason = source.get("reason") or ""
        if reason not in _UNREMARKABLE:
            message = " ".join((source.get("message") or "").split())
            return f"{reason}: {message}" if message else reason
    return ""

"""Settings of an engine of type ``kubernetes`` and of its pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator
from typing_extensions import Self

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import (
    ByteSize,
    Json,
    Name,
    Number,
    Positive,
    Section,
    SmallCount,
    Text,
)
from resolute.contracts.priorities import LEAST_PRIORITY
from resolute_engines.configs.host_access import HostPath
from resolute_engines.kubernetes.pod_spec.merge import refused_fields
from resolute_engines.kubernetes.pod_spec.workspace_mounts import unmounted
from resolute_engines.kubernetes.pods import CONTAINER
from resolute_engines.protocol import MOST_ALLOCATIONS

MOST_PREEMPTION_GRACE = 24 * 3600


def _mergeable(pod_spec: dict[str, Any]) -> dict[str, Any]:
    for fault in refused_fields(pod_spec):
        raise reject("a pod_spec as configs have it", problem=f"{fault.field}: {fault.description}")
    return pod_spec


class KubernetesEngineOptions(Section):
    """Options of an engine of type ``kubernetes``.

    Attributes:
        namespace: Where its Pods are.
        kubeconfig: File with credentials as kubectl has it; empty for the service account of the Pod that the
            services run in.
        context: A context of that file; empty for its own choice.
        services_address: ``host:port`` where Pods reach the services; empty for the same as here.
        services_certificate: File with the certificates to trust there, as PEM; empty for those of the
            services.
        runtime_image: Image with Resolute that images of trials are given Resolute from; empty where they
            have it themselves.
        python: Interpreter in images that have Resolute themselves.
        user: Who trials are in their containers, as ``uid:gid``.
        image_timeout: Seconds for which an image, or what else a container wants, may be missing.
    """

    renamed: ClassVar[Mapping[str, str]] = {"image_patience": "image_timeout"}

    namespace: Name = "default"
    kubeconfig: Text = ""
    context: Text = ""
    services_address: Text = ""
    services_certificate: Text = ""
    runtime_image: Text = ""
    python: Name = "python3"
    user: Annotated[Text, Field(pattern=r"^[0-9]+:[0-9]+$")] = "10001:10001"
    image_timeout: Annotated[Number, Field(ge=0)] = 300


class PriorityClass(Section):
    """Which priority class Pods get.

    Attributes:
        up_to: The least urgent ``resources.priority`` that gets it, of those that no class before it gets.
        name: What Kubernetes calls the class.
    """

    up_to: Annotated[Positive, Field(le=LEAST_PRIORITY)] = LEAST_PRIORITY
    name: Name


class KubernetesPoolOptions(Section):
    """Options of a pool of such an engine.

    Attributes:
        image: Image of trials whose config names none.
        slots_per_node: Slots of each Pod of a trial that has several.
        slot_type: What a slot is.
        gpu_resource: What Kubernetes calls a GPU.
        max_slots: Most slots of a trial; any number if left out.
        most_allocations: Most trials that Kubernetes is given at a time; the others wait here.
        priority_classes: Priority classes of Pods; without any, Pods have that of the pod_spec, or none.
        kueue_queue: Queue of Kueue that admits the Pods of a run together; empty for none.
        cpus_per_slot: Processors of each slot; trials without slots get as many.
        memory_per_slot: Memory of each slot; trials without slots get as much.
        preemption_grace: Seconds between the notice that a Pod must go and its end.
        pod_spec: What is added to every Pod; ``environment.pod_spec`` of a config goes first.
        allowed_pod_spec: Fields that configs may set in ``environment.pod_spec`` beside the harmless ones, by
            their paths, such as ``spec.volumes.hostPath``; ``*`` for all.
        allowed_secrets: Secrets of the namespace that configs may use there.
        checkpoint_directories: Where ``pod_spec`` mounts directories for checkpoints of the type
            ``shared_fs``; of each, a trial sees what is its workspace's.
    """

    image: Text = ""
    slots_per_node: Positive = 1
    slot_type: Literal["cpu", "gpu"] = "gpu"
    gpu_resource: Name = "nvidia.com/gpu"
    max_slots: Positive | None = None
    most_allocations: Annotated[SmallCount, Field(ge=1)] = MOST_ALLOCATIONS
    priority_classes: tuple[PriorityClass, ...] = ()
    kueue_queue: Text = ""
    cpus_per_slot: Annotated[Number, Field(gt=0)] | None = None
    memory_per_slot: ByteSize | None = None
    preemption_grace: Annotated[Positive, Field(le=MOST_PREEMPTION_GRACE)] = 120
    pod_spec: Annotated[dict[str, Json], AfterValidator(_mergeable)] | None = None
    allowed_pod_spec: tuple[Name, ...] = ()
    allowed_secrets: tuple[Name, ...] = ()
    checkpoint_directories: tuple[HostPath, ...] = ()

    @model_validator(mode="after")
    def _mounts_directories(self) -> Self:
        for directory in unmounted(self.additions, self.checkpoint_directories):
            raise reject(
                f"a directory at which pod_spec mounts a volume for {CONTAINER}, without subPathExpr",
                problem=f"checkpoint_directories: found {directory!r}",
            )
        return self

    @property
    def additions(self) -> Mapping[str, Any]:
        """``pod_spec``, empty where there is none."""
        return self.pod_spec or {}

    def priority_class(self, priority: int) -> str:
        """The class of Pods of a trial; empty for none of the settings'."""
        fitting = [each for each in self.priority_classes if priority <= each.up_to]
        return min(fitting, key=lambda each: each.up_to).name if fitting else ""

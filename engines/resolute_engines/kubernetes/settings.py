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
        namespace: Namespace of its Pods.
        kubeconfig: File with credentials, in kubectl's format; empty for the service account of the services'
            Pod.
        context: Context of that file; empty for the file's default.
        services_address: ``host:port`` at which Pods reach the services; empty for the same address as here.
        services_certificate: PEM file with the certificates to trust at that address; empty for those of the
            services.
        runtime_image: Image from which Resolute is copied into the images of trials; empty if those contain
            Resolute.
        python: Interpreter in images that contain Resolute.
        user: User of trials in their containers, as ``uid:gid``.
        image_timeout: Seconds for which an image, or another object that a container needs, may be missing.
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
    """The priority class of Pods for a range of priorities.

    Attributes:
        up_to: The least urgent ``resources.priority`` that gets this class. More urgent ones get an earlier
            class if its range includes them.
        name: Name of the class in Kubernetes.
    """

    up_to: Annotated[Positive, Field(le=LEAST_PRIORITY)] = LEAST_PRIORITY
    name: Name


class KubernetesPoolOptions(Section):
    """Options of a pool of such an engine.

    Attributes:
        image: Default image of trials.
        slots_per_node: Slots of each Pod of a trial with several Pods.
        slot_type: Kind of a slot.
        gpu_resource: Name of a GPU resource in Kubernetes.
        max_slots: Most slots of a trial; the default is no limit.
        most_allocations: Most trials that are submitted to Kubernetes at one time; others wait in the queue
            of the cluster.
        priority_classes: Priority classes of Pods. Without any, Pods have the class of the pod_spec, or none.
        kueue_queue: Queue of Kueue that admits the Pods of a run together; empty for none.
        cpus_per_slot: Processors of each slot; a trial without slots gets the same number.
        memory_per_slot: Memory of each slot; a trial without slots gets the same amount.
        preemption_grace: Seconds between the eviction notice of a Pod and its end.
        pod_spec: Fields that are added to every Pod. ``environment.pod_spec`` of a config takes precedence.
        allowed_pod_spec: Paths of fields that configs may set in ``environment.pod_spec`` beside the harmless
            ones, such as ``spec.volumes.hostPath``; ``*`` for all.
        allowed_secrets: Secrets of the namespace that configs may use in ``environment.pod_spec``.
        checkpoint_directories: Paths at which ``pod_spec`` mounts directories for checkpoints of the type
            ``shared_fs``. A trial sees only its workspace's part of each.
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

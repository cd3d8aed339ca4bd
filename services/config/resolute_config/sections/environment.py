"""The ``environment`` section: image, variables and ports of a trial's container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, Field, PlainValidator, TypeAdapter

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Flag, Int, Json, Name, Section, Text
from resolute.contracts.run.secret_references import SecretReference
from resolute_engines.kubernetes.pod_spec.merge import refused_fields

DEVICE_CLASSES = ("cpu", "cuda", "rocm")


def _variable(entry: str) -> str:
    if not entry or entry.startswith("="):
        raise reject('"NAME=value", or "NAME" to pass on the value of the agent')
    return entry


def _secret(entry: str) -> str:
    try:
        SecretReference.read(entry)
    except ValueError:
        raise reject('the name of a secret, or "VARIABLE=NAME" for a variable too') from None
    return entry


Variable: TypeAlias = Annotated[Text, AfterValidator(_variable)]
Secret: TypeAlias = Annotated[Text, AfterValidator(_secret)]
Port: TypeAlias = Annotated[Int, Field(ge=1, le=65535)]

_GPU_IS_CUDA = {"gpu": "it is the old name of cuda, which is given too"}
_VARIABLES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[Variable, ...])


class Image(Section):
    """The container image for each class of device.

    Attributes:
        cpu: Image for trials without an accelerator.
        cuda: Image for trials on NVIDIA GPUs.
        rocm: Image for trials on AMD GPUs.
    """

    shape: ClassVar[str] = "the name of an image, or a map of such names for cpu, cuda, rocm"
    advice: ClassVar[Mapping[str, str]] = _GPU_IS_CUDA

    cpu: Text | None = None
    cuda: Text | None = None
    rocm: Text | None = None

    @classmethod
    def expand_shorthand(cls, data: Any) -> Any:
        """One name stands for all classes."""
        return dict.fromkeys(DEVICE_CLASSES, data) if isinstance(data, str) else data


class EnvironmentVariables(Section):
    """Environment variables for each class of device. Of entries with the same name the last counts.

    Attributes:
        cpu: Variables of trials without an accelerator.
        cuda: Variables of trials on NVIDIA GPUs.
        rocm: Variables of trials on AMD GPUs.
    """

    shape: ClassVar[str] = 'a list of "NAME=value", or a map of such lists for cpu, cuda, rocm'
    advice: ClassVar[Mapping[str, str]] = _GPU_IS_CUDA

    cpu: tuple[Variable, ...] = ()
    cuda: tuple[Variable, ...] = ()
    rocm: tuple[Variable, ...] = ()

    @classmethod
    def expand_shorthand(cls, data: Any) -> Any:
        """One list stands for all classes."""
        if isinstance(data, Mapping) and data and not {*DEVICE_CLASSES, *cls.advice}.intersection(data):
            name, value = next(iter(data.items()))
            raise reject(cls.shape, problem="found a map of variables", hint=f'write - "{name}={value}"')
        return (
            dict.fromkeys(DEVICE_CLASSES, _VARIABLES.validate_python(data))
            if isinstance(data, list)
            else data
        )


class ProxyPort(Section):
    """A port of the trial that the cluster makes reachable.

    Attributes:
        proxy_port: The port.
        proxy_tcp: Whether the port serves plain TCP instead of HTTP.
        unauthenticated: Whether the port can be reached without authentication.
        default_service_id: Whether the port is reached under the trial's id.
    """

    proxy_port: Port = Field(description="a port from 1 to 65535")
    proxy_tcp: Flag = False
    unauthenticated: Flag = False
    default_service_id: Flag = False


class RegistryAuth(Section):
    """Credentials for the image's registry. The fields are those of Docker's API."""

    hidden: ClassVar[frozenset[str]] = frozenset({"password", "auth", "identitytoken", "registrytoken"})

    username: Text | None = None
    password: Text | None = None
    auth: Text | None = None
    email: Text | None = None
    serveraddress: Text | None = None
    identitytoken: Text | None = None
    registrytoken: Text | None = None


def _enabled(value: Any) -> Any:
    if value != "auto" and not isinstance(value, bool):
        raise reject("true, false or auto")
    return value


Enabled: TypeAlias = Annotated[bool | Literal["auto"], PlainValidator(_enabled)]


class WarmStart(Section):
    """Warm starts: runs are forked from a process that has imported their modules.

    Attributes:
        enabled: Whether runs start warm; ``auto`` for runs of one process in searches of several trials.
        preload: Modules to import before the fork; empty to learn them from the first run.
    """

    shape: ClassVar[str] = "true, false, auto, or a map with enabled and preload"

    enabled: Enabled = True
    preload: tuple[Name, ...] = ()

    @classmethod
    def expand_shorthand(cls, data: Any) -> Any:
        """A flag or ``auto`` alone says whether it is wanted."""
        return {"enabled": data} if isinstance(data, bool) or data == "auto" else data


def _configurable(pod_spec: dict[str, Any]) -> dict[str, Any]:
    """Refuses what is the platform's, also where no pool runs Pods: the config must do on one that does."""
    for fault in refused_fields(pod_spec):
        raise reject(f"a pod_spec without {fault.field}", problem=f"{fault.field} {fault.description}")
    return pod_spec


class Environment(Section):
    """The environment of a trial's processes.

    Attributes:
        image: Container image.
        environment_variables: Variables of every process of the trial.
        secrets: Secrets that the trial is given: names, or ``VARIABLE=NAME``.
        ports: Ports by name.
        proxy_ports: Ports that the cluster makes reachable.
        force_pull_image: Whether to pull the image even if it is present.
        registry_auth: Credentials for the image's registry.
        add_capabilities: Linux capabilities to add to the container.
        drop_capabilities: Linux capabilities to remove from the container.
        pod_spec: Additions to the pod on Kubernetes.
        warm_start: Whether runs are forked from a process that has imported their modules.
    """

    image: Image = Image()
    environment_variables: EnvironmentVariables = EnvironmentVariables()
    secrets: tuple[Secret, ...] = ()
    ports: Mapping[Name, Port] = Field(default_factory=dict)
    proxy_ports: tuple[ProxyPort, ...] = ()
    force_pull_image: Flag = False
    registry_auth: RegistryAuth | None = None
    add_capabilities: tuple[Name, ...] = ()
    drop_capabilities: tuple[Name, ...] = ()
    pod_spec: Annotated[dict[str, Json], AfterValidator(_configurable)] | None = None
    warm_start: WarmStart = WarmStart(enabled="auto")

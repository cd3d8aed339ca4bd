"""Settings of an engine of type ``ray`` and of its pools."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import (
    Name,
    Number,
    Positive,
    Section,
    SmallCount,
    Text,
)
from resolute_engines.protocol import MOST_ALLOCATIONS


def _head(address: str) -> str:
    host, _, port = address.rpartition(":")
    if "/" in host or not host or not port.isdecimal():
        raise reject("host:port of Ray's head, on a node of whose cluster the services run")
    return address


class RayEngineOptions(Section):
    """Options of an engine of type ``ray``.

    Attributes:
        address: ``host:port`` of Ray's head.
        services_address: ``host:port`` at which the nodes reach the services; empty for the same address as
            here.
        services_certificate: PEM file with the certificates to trust at that address; empty for those of the
            services.
        python: Interpreter on the nodes that has Resolute; empty for that of Ray's workers.
        driver_python: Interpreter on this machine that has the Ray version of the cluster; empty for that of
            the services.
        directory: Directory for run directories on each node; empty for the node's directory of temporary
            files.
    """

    address: Annotated[Text, AfterValidator(_head)]
    services_address: Text = ""
    services_certificate: Text = ""
    python: Text = ""
    driver_python: Text = ""
    directory: Text = ""


class RayPoolOptions(Section):
    """Options of a pool of such an engine.

    Attributes:
        slots_per_node: Slots on each node of a trial with several nodes.
        slot_type: Kind of a slot.
        max_slots: Most slots of a trial; the default is the number of slots of all nodes.
        most_allocations: Most trials that are submitted to Ray at one time; others wait in the queue of the
            cluster.
        resources: Further Ray resources of each container, such as ``{"accelerator_type:A100": 0.001}``.
    """

    slots_per_node: Positive = 1
    slot_type: Literal["cpu", "gpu"] = "gpu"
    max_slots: Positive | None = None
    most_allocations: Annotated[SmallCount, Field(ge=1)] = MOST_ALLOCATIONS
    resources: dict[Name, Annotated[Number, Field(gt=0)]] | None = None

    @property
    def slot_resource(self) -> str:
        """What Ray calls a slot."""
        return self.slot_type.upper()

    def bundle(self, slots: int) -> dict[str, float]:
        """What a container of some slots wants; one without slots gets a processor, for Ray takes no less."""
        wanted = {self.slot_resource: float(slots)} if slots else {"CPU": 1.0}
        return {**(self.resources or {}), **wanted}

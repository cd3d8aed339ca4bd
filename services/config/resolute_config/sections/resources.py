"""The ``resources`` section: slots, pool and priority of each trial."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import (
    ByteSize,
    Flag,
    Int,
    Json,
    Number,
    Section,
    SmallCount,
    Text,
)
from resolute.contracts.priorities import LEAST_PRIORITY
from resolute_config.sections.mounts import Devices

_MOST_HEADERS = 8
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]{0,500}")
_URL = re.compile(r"http://[\x21-\x7e]{1,2000}")


def _url(value: str) -> str:
    """Accept plain HTTP only: a metadata server speaks it, and no secret belongs in a URL of a config."""
    try:
        parts = urlsplit(value)
        sound = bool(parts.hostname) and parts.port != 0 and parts.username is None and not parts.fragment
    except ValueError:
        sound = False
    if not sound or not _URL.fullmatch(value):
        raise reject('a URL such as "http://169.254.169.254/path", without user, password and fragment')
    return value


def _headers(value: dict[str, str]) -> dict[str, str]:
    sound = all(
        _HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(text) for name, text in value.items()
    )
    if not sound or len(value) > _MOST_HEADERS:
        raise reject(f"a map of at most {_MOST_HEADERS} HTTP headers, in ASCII and without line breaks")
    return value


HttpUrl: TypeAlias = Annotated[Text, AfterValidator(_url)]
Headers: TypeAlias = Annotated[dict[Text, Text], AfterValidator(_headers)]


class MetadataProbe(Section):
    """The request by which each machine is asked whether it will be taken away.

    Attributes:
        url: URL of the request, which is sent on the machine itself.
        headers: Headers of the request.
        status: HTTP status that means that the machine will be taken away; any other means that it stays.
        contains: Text that such an answer must also contain; empty for any text.
        interval: Seconds between two requests.
        timeout: Seconds to wait for an answer.
    """

    shape: ClassVar[str] = "a map with url"

    url: HttpUrl = Field(description='a URL such as "http://169.254.169.254/path"')
    headers: Headers = Field(default_factory=dict)
    status: Annotated[Int, Field(ge=200, le=599)] = 200
    contains: Annotated[Text, Field(max_length=256)] = ""
    interval: Annotated[Number, Field(ge=1, le=300)] = 5
    timeout: Annotated[Number, Field(ge=0.1, le=30)] = 2


class Preemptible(Section):
    """Machines that may be taken away at any time.

    Attributes:
        enabled: Whether trials run on such machines. An unexplained end then does not count as a failure of
            the trial.
        metadata: Request that tells whether a machine will be taken away; None if its engine or SIGTERM tells
            it.
    """

    shape: ClassVar[str] = "true, false, or a map with metadata"

    enabled: Flag = True
    metadata: MetadataProbe | None = None

    @classmethod
    def expand_shorthand(cls, data: Any) -> Any:
        """A flag alone says whether they may be."""
        return {"enabled": data} if isinstance(data, bool) else data


def _urgency(value: Any) -> Any:
    if isinstance(value, str):
        raise reject(f"an integer from 1, the most urgent, to {LEAST_PRIORITY}")
    return value


Priority: TypeAlias = Annotated[Int, BeforeValidator(_urgency), Field(ge=1, le=LEAST_PRIORITY)]


class Resources(Section):
    """The resources of a trial.

    Attributes:
        slots_per_trial: Number of slots of each trial; 0 for trials without slots.
        max_slots: Most slots that the whole experiment may hold; None for no limit.
        weight: Share of the experiment among others, under fair-share scheduling.
        priority: Urgency from 1 (most urgent) to 99; None for the cluster's default.
        resource_pool: Pool to run in; empty for the default pool.
        shm_size: Size of a container's shared memory in bytes.
        devices: Devices of the host that the container gets.
        is_single_node: Whether all slots of a trial must be on one node.
        preemptible: Whether machines may be taken away, and how they announce it.
        native_parallel: Field of old configs; ignored.
        agent_label: Field of old configs; ignored.
    """

    slots_per_trial: SmallCount = 1
    max_slots: SmallCount | None = None
    weight: Annotated[Number, Field(gt=0)] = 1
    priority: Priority | None = None
    resource_pool: Text = ""
    shm_size: ByteSize | None = None
    devices: Devices = ()
    is_single_node: Flag | None = None
    preemptible: Preemptible = Preemptible(enabled=False)
    native_parallel: Flag | None = None
    agent_label: Json | None = None

"""The parameters that all members of a group must share."""

from dataclasses import dataclass

from resolute.core.distributed.group.membership import Membership
from resolute.core.distributed.transport.messages import Codec


@dataclass(frozen=True)
class GroupParameters:
    """Parameters with the same values on every member.

    Attributes:
        membership: The members.
        codec: Signs and checks the messages.
        job: The run that all of them belong to.
        timeout: Seconds that a collective may wait for its slowest member; None waits forever.
        ipv6: Whether they speak IPv6 as well.
    """

    membership: Membership
    codec: Codec
    job: str = ""
    timeout: float | None = None
    ipv6: bool = False

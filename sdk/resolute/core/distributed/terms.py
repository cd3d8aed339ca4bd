"""What the members of a star agree on before they meet."""

from dataclasses import dataclass

from resolute.core.distributed.roster import Roster
from resolute.core.distributed.wire import Codec


@dataclass(frozen=True)
class Terms:
    """The same on every member.

    Attributes:
        roster: The members.
        codec: Signs and checks the messages.
        job: The run that all of them belong to.
        timeout: Seconds that a collective may wait for its slowest member; None waits for ever.
        ipv6: Whether they speak IPv6 as well.
    """

    roster: Roster
    codec: Codec
    job: str = ""
    timeout: float | None = None
    ipv6: bool = False

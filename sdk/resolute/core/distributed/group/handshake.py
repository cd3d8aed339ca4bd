"""The handshake by which ranks join a group before its first collective."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from resolute.core.distributed.errors import MalformedFrameError
from resolute.core.distributed.group.membership import Membership


@dataclass(frozen=True)
class Hello:
    """The first message of a member.

    Attributes:
        member: Its index in the group.
        size: Number of members that it expects.
        job: The run that it belongs to.
        place: Process and host, for messages.
        nonce: Distinguishes this process from all others.
    """

    member: int
    size: int
    job: str
    place: str
    nonce: str

    def to_fields(self) -> dict[str, Any]:
        """As it travels."""
        return asdict(self)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "Hello":
        """As it arrived.

        Raises:
            MalformedFrameError: It is not complete.
        """
        try:
            return cls(
                member=int(fields["member"]),
                size=int(fields["size"]),
                job=str(fields["job"]),
                place=str(fields["place"]),
                nonce=str(fields["nonce"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedFrameError(f"a HELLO message cannot be read: {error}") from None


class Handshake:
    """Admits each member once.

    Args:
        membership: The members that are expected.
        job: The run that they must belong to.
    """

    def __init__(self, membership: Membership, job: str) -> None:
        self._membership = membership
        self._job = job
        self._nonces: dict[int, str] = {}

    @property
    def missing(self) -> list[int]:
        """The members that have not come."""
        return [member for member in range(len(self._membership)) if member not in self._nonces]

    def refusal(self, hello: Hello) -> str | None:
        """Why this process cannot join, or None when it can."""
        size = len(self._membership)
        if hello.job != self._job:
            return f"it belongs to run {hello.job!r} and this is run {self._job!r}"
        if hello.size != size or not 0 <= hello.member < size:
            return f"it expects {hello.size} processes and this job has {size}"
        if hello.member in self._nonces:
            return f"{self._membership.describe([hello.member])} is here already"
        return None

    def enter(self, hello: Hello) -> None:
        """Admits a process that `refusal` has nothing against."""
        self._nonces[hello.member] = hello.nonce
        self._membership.locate(hello.member, hello.place)

    def nonce(self, member: int) -> str:
        """The name that an admitted member gave itself."""
        return self._nonces[member]

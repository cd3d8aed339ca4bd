"""The interface of a group of processes."""

from typing import Any, Protocol


class ProcessGroup(Protocol):
    """The collectives of a group of processes. All processes make the same calls in the same order."""

    def gather(self, value: Any) -> list[Any] | None:
        """All values at the root; None elsewhere."""

    def allgather(self, value: Any) -> list[Any]:
        """All values everywhere."""

    def broadcast(self, value: Any) -> Any:
        """The root's value everywhere."""

    def close(self) -> None:
        """Leaves the group."""


class SingleProcessGroup:
    """The group of one."""

    def gather(self, value: Any) -> list[Any] | None:
        """The value."""
        return [value]

    def allgather(self, value: Any) -> list[Any]:
        """The value."""
        return [value]

    def broadcast(self, value: Any) -> Any:
        """The value."""
        return value

    def close(self) -> None:
        """Nothing to leave."""

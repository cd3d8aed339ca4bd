"""The ranks of one group, and their names in error messages."""

from collections.abc import Iterable, Sequence


class Membership:
    """The members of a group, with their ranks in the job and their names in messages.

    Args:
        ranks: The job's rank of each member, in the group's own order. The first is the group's root.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        self._ranks = tuple(ranks)
        self._places: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._ranks)

    def assign(self, ranks: Sequence[int]) -> None:
        """Tells the ranks where they are known only later; the number of members stays.

        Raises:
            ValueError: It does not.
        """
        if len(ranks) != len(self._ranks):
            raise ValueError(f"{len(ranks)} ranks for {len(self._ranks)} members")
        self._ranks = tuple(ranks)

    def job_ranks(self, members: Iterable[int]) -> tuple[int, ...]:
        """Members of the group as ranks of the job."""
        return tuple(self._ranks[member] for member in sorted(members))

    def locate(self, member: int, place: str) -> None:
        """Remembers where a member runs, for messages."""
        self._places[member] = place

    def describe(self, members: Iterable[int]) -> str:
        """Such as ``rank 3 (pid 17 on node-b)`` or ``ranks 1, 2, 5``."""
        chosen = sorted(members)
        if len(chosen) == 1:
            place = self._places.get(chosen[0])
            return f"rank {self._ranks[chosen[0]]}" + (f" ({place})" if place else "")
        return "ranks " + ", ".join(str(self._ranks[member]) for member in chosen)

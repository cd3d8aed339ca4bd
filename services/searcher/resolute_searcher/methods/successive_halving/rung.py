"""One rung of successive halving: the ordered metrics of the trials that reached it, and its best share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from resolute_searcher.methods.successive_halving.ordered_entries import OrderedEntries, RungEntry


class Rung:
    """The trials on a rung, in order of their metrics.

    The best ``floor(n / divisor)`` of n entries, but at least `at_least`, are its *top*. The cost of a report
    does not grow with the number of trials.

    Args:
        divisor: Reduction factor: the top is one in ``divisor`` entries; above 1.
        at_least: Smallest size of the top of a rung that is not empty.
        newest_first: Whether a later entry precedes an earlier one with the same metric.
    """

    def __init__(self, divisor: float, *, at_least: int = 0, newest_first: bool = False) -> None:
        self._divisor = divisor
        self._at_least = at_least
        self._step = -1 if newest_first else 1
        self._arrivals = 0
        self._entries = OrderedEntries()
        self._by_trial: dict[str, RungEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, trial_key: str) -> bool:
        return trial_key in self._by_trial

    def __iter__(self) -> Iterator[RungEntry]:
        """Yields the entries, best first, as they were when the iteration began."""
        return iter(list(self._entries))

    @property
    def top_size(self) -> int:
        """The number of entries in the top."""
        return self._top_size(len(self))

    def insert(self, trial_key: str, metric: float) -> None:
        """Adds a trial with its metric; smaller is better."""
        self._arrivals += 1
        entry = RungEntry(metric, self._step * self._arrivals, trial_key)
        self._by_trial[trial_key] = entry
        self._entries.add(entry)

    def remove(self, trial_key: str) -> None:
        """Removes a trial and its effect on the top, if it is on the rung."""
        entry = self._by_trial.pop(trial_key, None)
        if entry is not None:
            self._entries.remove(entry)

    def require(self, at_least: int) -> None:
        """Sets the minimal size of the top of a rung that is not empty."""
        self._at_least = at_least

    def best(self) -> list[RungEntry]:
        """Returns the top, best first."""
        return list(islice(self._entries, self.top_size))

    def entry(self, trial_key: str) -> RungEntry:
        """Returns the entry of a trial that is on the rung."""
        return self._by_trial[trial_key]

    def rank(self, trial_key: str) -> int:
        """Returns the rank of a trial that is on the rung, from 1."""
        return self._entries.place(self._by_trial[trial_key]) + 1

    def in_top(self, trial_key: str) -> bool:
        """Returns whether a trial is in the top."""
        last = self.last_of_top()
        return last is not None and self._by_trial[trial_key] <= last

    def last_of_top(self) -> RungEntry | None:
        """Returns the worst entry of the top; None when the top is empty."""
        size = self.top_size
        return self._entries[size - 1] if size else None

    def top_grew(self) -> bool:
        """Returns whether the newest entry made the top larger than it was."""
        return self.top_size != self._top_size(len(self) - 1)

    def snapshot(self) -> dict[str, Any]:
        """Returns the entries, best first, and the size of the top, as JSON values."""
        entries = [[entry.trial_key, entry.metric, entry.order] for entry in self._entries]
        return {"arrivals": self._arrivals, "top": self.top_size, "entries": entries}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the entries from a snapshot."""
        self._arrivals = state["arrivals"]
        self._entries = OrderedEntries(
            RungEntry(metric, order, trial) for trial, metric, order in state["entries"]
        )
        self._by_trial = {entry.trial_key: entry for entry in self._entries}

    def _top_size(self, entries: int) -> int:
        return max(int(entries / self._divisor), min(self._at_least, entries))

"""The table type of the state machines: rows of events, states and effects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from resolute.errors import IllegalTransitionError

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)
Effect = TypeVar("Effect", bound=Enum)


@dataclass(frozen=True, kw_only=True)
class Row(Generic[State, Event, Effect]):
    """The effect of one event in some states."""

    event: Event
    """What happens."""
    before: tuple[State, ...]
    """States in which it may."""
    after: State | None = None
    """State that it leads to; None when the state stays what it is."""
    effects: tuple[Effect, ...] = ()
    """What is done besides."""


@dataclass(frozen=True)
class Step(Generic[State, Effect]):
    """The effect of one event in one state."""

    after: State
    """The state that follows."""
    effects: tuple[Effect, ...]
    """What is done besides."""


class Table(Generic[State, Event, Effect]):
    """A state machine. An event without a row for the current state is illegal.

    Args:
        rows: All legal events.
        remedies: Remedies for callers that request an illegal event.

    Raises:
        ValueError: Two rows have the same event in the same state.
    """

    def __init__(
        self, rows: Iterable[Row[State, Event, Effect]], *, remedies: Mapping[Event, str] | None = None
    ) -> None:
        self.rows = tuple(rows)
        self._remedies = remedies or {}
        self._steps: dict[tuple[State, Event], Step[State, Effect]] = {}
        for row in self.rows:
            for before in row.before:
                if (before, row.event) in self._steps:
                    raise ValueError(f"two rows say what {row.event} does in {before}")
                self._steps[before, row.event] = Step(row.after or before, row.effects)

    @property
    def steps(self) -> Mapping[tuple[State, Event], Step[State, Effect]]:
        """Every legal event in every state."""
        return self._steps

    def allows(self, before: State, event: Event) -> bool:
        """Whether an event is legal in a state."""
        return (before, event) in self._steps

    def step(self, before: State, event: Event, *, resource: str) -> Step[State, Effect]:
        """Looks up what an event does.

        Args:
            before: The state now.
            event: What happens.
            resource: The object, for the message.

        Raises:
            IllegalTransitionError: The event is not legal in this state.
        """
        step = self._steps.get((before, event))
        if step is None:
            raise IllegalTransitionError.between(
                resource,
                from_state=before.value,
                to_state=event.value,
                remedy=self._remedies.get(event, ""),
            )
        return step


def rows_for(
    events: Mapping[Event, State],
    *,
    before: Collection[State],
    effects: tuple[Effect, ...] = (),
) -> list[Row[State, Event, Effect]]:
    """Writes one row for each of some events that differ only in where they lead."""
    return [
        Row(event=event, before=tuple(before), after=after, effects=effects)
        for event, after in events.items()
    ]

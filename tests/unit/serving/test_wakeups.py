"""Followers are woken, and leave nothing behind."""

from __future__ import annotations

from resolute_serving.wakeups import Wakeups


def test_news_wakes_those_who_asked_before_it() -> None:
    wakeups = Wakeups()
    event, same, other = wakeups.next_for("a"), wakeups.next_for("a"), wakeups.next_for("b")
    assert event is same
    wakeups.notify("a")
    assert event.is_set()
    assert not other.is_set()
    assert not wakeups.next_for("a").is_set()


def test_everyone_can_be_woken() -> None:
    wakeups = Wakeups()
    events = [wakeups.next_for(trial) for trial in "abc"]
    wakeups.notify_all()
    assert all(event.is_set() for event in events)


def test_news_for_nobody_is_forgotten() -> None:
    wakeups = Wakeups()
    wakeups.next_for("a")
    wakeups.notify("b")
    assert len(wakeups._events) == 0

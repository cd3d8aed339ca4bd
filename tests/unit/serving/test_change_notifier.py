"""Followers are woken, and leave nothing behind."""

from __future__ import annotations

from resolute_serving.change_notifier import ChangeNotifier


def test_news_wakes_those_who_asked_before_it() -> None:
    change_notifier = ChangeNotifier()
    event, same, other = (
        change_notifier.next_for("a"),
        change_notifier.next_for("a"),
        change_notifier.next_for("b"),
    )
    assert event is same
    change_notifier.notify("a")
    assert event.is_set()
    assert not other.is_set()
    assert not change_notifier.next_for("a").is_set()


def test_everyone_can_be_woken() -> None:
    change_notifier = ChangeNotifier()
    events = [change_notifier.next_for(trial) for trial in "abc"]
    change_notifier.notify_all()
    assert all(event.is_set() for event in events)


def test_news_for_nobody_is_forgotten() -> None:
    change_notifier = ChangeNotifier()
    change_notifier.next_for("a")
    change_notifier.notify("b")
    assert len(change_notifier._events) == 0

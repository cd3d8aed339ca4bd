"""Statuses and alerts of scripts: whatever they say, training goes on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from resolute import core
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.shared_memory.movement import Movement
from resolute.core.remote.alerts import RemoteAlerts
from resolute.core.remote.trial_record import RemoteTrialRecord

WORDS: list[tuple[Any, str]] = [
    ("epoch 3", "epoch 3"),
    ("half of a character \ud83d", "half of a character ?"),
    (ValueError("loss is NaN"), "loss is NaN"),
]


class Services:
    """Takes requests as the services do."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.connection = SimpleNamespace(trial_id="trial", run=1)
        self.trials = SimpleNamespace(SetTrialStatus=self._take)
        self.alerts = SimpleNamespace(RaiseAlert=self._take)

    def check_process(self) -> None:
        """It is the one that began."""

    def _take(self, request: Any, timeout: float) -> None:
        self.requests.append(request)


@pytest.mark.parametrize(("words", "shown"), WORDS)
def test_a_status_never_fails(words: Any, shown: str, tmp_path: Path) -> None:
    services: Any = Services()
    record = RemoteTrialRecord(
        services,
        run_directory=RunDirectory(tmp_path),
        flush=lambda: None,
        movement=Movement(tmp_path / "movement", rank=0),
    )
    record.set_status(words)
    assert services.requests[0].status == shown


@pytest.mark.parametrize(("words", "shown"), WORDS)
def test_an_alert_says_whatever_it_is_given(words: Any, shown: str, tmp_path: Path) -> None:
    services: Any = Services()
    RemoteAlerts(services).raise_alert(words, words, "warn")
    assert (services.requests[0].title, services.requests[0].text) == (shown, shown)
    with core.init(checkpoint_storage=str(tmp_path)) as context:
        context.alert(words, words)

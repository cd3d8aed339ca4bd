"""The document of alerts, and how it is encrypted."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_experiments.alerts.document import HIDDEN, AlertsDocument, read_alerts
from resolute_serving.sealing import Sealer, SealingKey

DOCUMENT = """
endpoints:
- name: team
  type: slack
  url: https://hooks.slack.com/services/T0/B0/secret
- name: own
  type: webhook
  url: https://alerts.example.org/resolute
  secret: signature
rules:
- on: experiment
  states: [ERROR]
  to: [team, own]
- on: metric
  nan: true
  to: [own]
"""


def test_secrets_are_hidden_and_stay_where_they_are_hidden() -> None:
    first = read_alerts(DOCUMENT, earlier=AlertsDocument())
    shown = first.shown()
    assert "secret\n" not in shown
    assert "signature" not in shown
    assert shown.count(HIDDEN) == 2
    assert read_alerts(shown, earlier=first) == first
    with pytest.raises(InvalidArgumentError, match="a hidden secret that is not known"):
        read_alerts(shown, earlier=AlertsDocument())
    # The key of the signature goes to no other server than the one that it was given for.
    elsewhere = shown.replace("alerts.example.org", "evil.example.org")
    with pytest.raises(InvalidArgumentError, match="a hidden secret that is not known"):
        read_alerts(elsewhere, earlier=first)
    assert read_alerts(first.stored(), earlier=AlertsDocument()) == first


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("to: [team, own]", "to: [nobody]"), "there is no endpoint 'nobody'"),
        (("https://alerts", "ftp://alerts"), "an http or https URL"),
        (("https://alerts", "https://user:word@alerts"), "an http or https URL"),
        (("nan: true", "nan: false, to: [own]\n- on: queue_wait"), "."),
        (("  nan: true\n", ""), "no bound"),
        (("name: own", "name: team"), "'team' is there twice"),
        (("type: slack", "type: pager"), "slack"),
        (("name: team", "name: " + 101 * "n"), "at most 100 letters"),
        (("name: team", "name: te am"), "at most 100 letters"),
    ],
)
def test_what_is_wrong_is_named(change: tuple[str, str], fault: str) -> None:
    with pytest.raises(InvalidArgumentError, match=fault):
        read_alerts(DOCUMENT.replace(*change), earlier=AlertsDocument())


def test_a_sealed_secret_opens_with_its_key_and_purpose_alone() -> None:
    sealer = Sealer(bytes(32))
    sealed = sealer.seal("secret", purpose="one")
    assert b"secret" not in sealed
    assert sealer.unseal(sealed, purpose="one") == "secret"
    for other, purpose in ((sealer, "two"), (Sealer(bytes(31) + b"1"), "one")):
        with pytest.raises(FailedPreconditionError, match="was not encrypted with"):
            other.unseal(sealed, purpose=purpose)


def test_the_key_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "data/secrets.key"
    sealed = SealingKey().open(file).seal("secret", purpose="one")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    assert SealingKey().open(file).unseal(sealed, purpose="one") == "secret"


def test_a_key_whose_write_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secrets.key"

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            SealingKey().open(file)
    assert not file.exists()
    SealingKey().open(file)

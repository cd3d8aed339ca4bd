"""The forms of an alert."""

from __future__ import annotations

import json

from resolute_experiments.alerts.alert import Alert, request_for
from resolute_experiments.alerts.document import Chat


def test_a_long_text_is_cut_between_escapes_and_keeps_its_link() -> None:
    chat = Chat(name="team", type="slack", url="https://hooks.slack.com/services/T0/B0/secret")
    alert = Alert(key="key", on="alert", title="a<b", text=4000 * "<", time=1.0, link="https://page/trials/1")
    text = json.loads(request_for(chat, alert).body)["text"]
    assert text == "*a&lt;b*\n" + 3000 * "&lt;" + "\n<https://page/trials/1>"

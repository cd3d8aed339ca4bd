"""An alert, and its forms for the kinds of endpoints."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from resolute_experiments.alerts.document import Chat, Webhook

LEVELS = ("debug", "info", "warn", "error")
_COLORS: Mapping[str, int] = {"debug": 0x808080, "info": 0x2F80ED, "warn": 0xE0A100, "error": 0xD64545}
_TITLE, _TEXT = 200, 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An event of which people are notified."""

    key: str
    """Identifies it: an endpoint receives each key once."""
    on: str
    """The kind of rule that it is for."""
    title: str
    text: str
    level: str = "info"
    """One of ``LEVELS``."""
    time: float
    """Unix seconds."""
    link: str = ""
    """Page about it: its path while the alert is stored, its URL when it is sent; empty for none."""
    experiment: int | None = None
    """Number of the experiment."""
    trial: int | None = None
    """Number of the trial."""
    state: str = ""
    """What the experiment or trial has become."""

    def stored(self) -> dict[str, Any]:
        """The alert as JSON."""
        return {**asdict(self), "title": self.title[:_TITLE], "text": self.text[:_TEXT]}


@dataclass(frozen=True, slots=True)
class Request:
    """A request to an endpoint."""

    url: str
    body: bytes
    headers: Mapping[str, str]


def request_for(endpoint: Webhook | Chat, alert: Alert) -> Request:
    """Writes an alert as an endpoint wants it."""
    if isinstance(endpoint, Webhook):
        content: Any = alert.stored()
    elif endpoint.type == "slack":
        content = _slack(alert)
    elif endpoint.type == "discord":
        content = _discord(alert)
    else:
        content = _teams(alert)
    body = json.dumps(content, ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json; charset=utf-8", "X-Resolute-Key": alert.key}
    if isinstance(endpoint, Webhook) and endpoint.secret:
        signed = f"{alert.time:.0f}.".encode() + body
        digest = hmac.new(endpoint.secret.encode(), signed, hashlib.sha256).hexdigest()
        headers["X-Resolute-Timestamp"] = f"{alert.time:.0f}"
        headers["X-Resolute-Signature"] = f"sha256={digest}"
    return Request(endpoint.url, body, headers)


def mail_text(alert: Alert) -> str:
    """The alert as the text of a mail."""
    return "\n\n".join(filter(None, (alert.text, alert.link))) + "\n"


def _slack(alert: Alert) -> dict[str, Any]:
    # Slack's markup has three characters that stand for something.
    title, text = _escaped(alert.title[:_TITLE]), _escaped(alert.text[:_TEXT])
    link = f"\n<{alert.link}>" if alert.link else ""
    return {"text": f"*{title}*\n{text}{link}"}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _discord(alert: Alert) -> dict[str, Any]:
    embed = {
        "title": alert.title[:_TITLE],
        "description": alert.text[:_TEXT],
        "color": _COLORS[alert.level],
        **({"url": alert.link} if alert.link else {}),
    }
    # A name that a script wrote may not mention anyone.
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def _teams(alert: Alert) -> dict[str, Any]:
    card: dict[str, Any] = {
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "weight": "bolder", "wrap": True, "text": alert.title[:_TITLE]},
            {"type": "TextBlock", "wrap": True, "text": alert.text[:_TEXT]},
        ],
    }
    if alert.link:
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Open", "url": alert.link}]
    return {
        "type": "message",
        "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}],
    }

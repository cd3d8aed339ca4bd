"""The operator's settings of alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from resolute.errors import InvalidArgumentError
from resolute_experiments.alerts.egress import Network, networks

_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True, kw_only=True)
class MailServer:
    """The server that sends mails."""

    host: str
    port: int
    secure: bool
    """Whether it speaks TLS from the first byte; otherwise STARTTLS is used where it is offered."""
    user: str = ""
    password: str = ""
    sender: str
    """The address that mails come from."""


@dataclass(frozen=True, kw_only=True)
class AlertSettings:
    """The operator's settings of alerts."""

    allowed: tuple[Network, ...] = ()
    """Networks that are not public and may be reached nevertheless."""
    mail: MailServer | None = None
    """None where no mails are sent."""
    page_url: str = ""
    """Where people reach the page; empty for alerts without links."""

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> AlertSettings:
        """Reads these variables.

        RESOLUTE_ALERTS_ALLOWED has networks or addresses that alerts may be posted to although they are not
        public, joined by commas (none); RESOLUTE_SMTP_URL is ``smtp://USER:PASSWORD@HOST:PORT``, or ``smtps``
        (no mails), RESOLUTE_SMTP_FROM the address that mails come from; RESOLUTE_PAGE_URL is where people
        reach the page (no links).

        Raises:
            InvalidArgumentError: A variable is wrong.
        """
        text = variables.get("RESOLUTE_ALERTS_ALLOWED", "")
        try:
            allowed = networks(text)
        except ValueError as error:
            raise InvalidArgumentError(
                f"RESOLUTE_ALERTS_ALLOWED is {text!r}; it must be networks joined by commas: {error}"
            ) from error
        return cls(
            allowed=allowed,
            mail=_mail(variables),
            page_url=variables.get("RESOLUTE_PAGE_URL", "").rstrip("/"),
        )


def _mail(variables: Mapping[str, str]) -> MailServer | None:
    url = variables.get("RESOLUTE_SMTP_URL", "")
    if not url:
        return None
    sender = variables.get("RESOLUTE_SMTP_FROM", "")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        host, port = "", 0
    if not host or not port or parts.scheme not in _PORTS:
        raise InvalidArgumentError("RESOLUTE_SMTP_URL must be smtp://USER:PASSWORD@HOST:PORT, or smtps://")
    if "@" not in sender:
        raise InvalidArgumentError("RESOLUTE_SMTP_FROM must be the address that mails come from")
    return MailServer(
        host=host,
        port=port,
        secure=parts.scheme == "smtps",
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        sender=sender,
    )

"""Sends alerts by mail."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate

from resolute.errors import UnavailableError
from resolute_experiments.alerts.alert import Alert, mail_text
from resolute_experiments.alerts.deadline import ended_after
from resolute_experiments.alerts.settings import MailServer

_SECONDS = 10.0
_READY = 220


def send_mail(server: MailServer, to: Sequence[str], alert: Alert, *, seconds: float = _SECONDS) -> None:
    """Hands a mail to the server.

    Args:
        server: The server.
        to: Addresses of mailboxes.
        alert: What the mail says.
        seconds: How long a step, and all of it after the connection is made, may take.

    Raises:
        UnavailableError: It did not take it.
    """
    message = EmailMessage()
    message["From"], message["To"] = server.sender, ", ".join(to)
    # A header has one line.
    message["Subject"] = " ".join(alert.title.split())[:200]
    message["Date"] = formatdate(alert.time)
    message["Message-ID"] = f"<{alert.key}@{server.sender.rpartition('@')[2]}>"
    message["X-Resolute-Key"] = alert.key
    message.set_content(mail_text(alert))
    try:
        context = ssl.create_default_context()
        connection = (
            smtplib.SMTP_SSL(timeout=seconds, context=context)
            if server.secure
            else smtplib.SMTP(timeout=seconds)
        )
        with ended_after(seconds, lambda: connection.sock), connection:
            # The certificate is checked for this name, which only a constructor that connects would note.
            connection._host = server.host  # type: ignore[attr-defined] # noqa: SLF001
            code, answer = connection.connect(server.host, server.port)
            if code != _READY:
                raise smtplib.SMTPConnectError(code, answer)
            connection.ehlo()
            if not server.secure and connection.has_extn("starttls"):
                connection.starttls(context=context)
                connection.ehlo()
            if server.user:
                connection.login(server.user, server.password)
            connection.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        raise UnavailableError(f"the mail server {server.host} did not take it: {error}") from error

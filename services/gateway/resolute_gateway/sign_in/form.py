"""The sign-in form: its document without the built page, its submission, and its refusals."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from resolute.errors import ResoluteError
from resolute_gateway.web.answers import refusal, refusal_by

KIND = "application/x-www-form-urlencoded"
_LONGEST_BODY = 16_384
"""A password of the most characters, each of them four bytes that are escaped, is not longer."""
_CODE = re.compile(r"(?P<user>[\w.@-]{1,128})\.[A-Za-z0-9_-]{20,}")
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Sign in to Resolute</title>
<h1>Sign in to Resolute</h1>
<p>{message}</p>
{provider}<form method="post" action="sign-in">
{whose}<label>One-time code <input name="code" value="{code}" autocomplete="off" required></label>
<button>Sign in{user}</button>
</form>
{by_name}<p><code>resolute user sign-in-link</code> prints a link with a code.</p>
</html>
"""
_BY_NAME = """<form method="post" action="sign-in">
<label>User <input name="user" autocomplete="username" required></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Sign in with the password</button>
</form>
"""


@dataclass(frozen=True)
class _Refusal:
    """The reason why a sign-in is refused."""

    status: int
    code: str
    """The error of the Connect protocol."""
    message: str


_REFUSALS: Mapping[str, _Refusal] = {
    "code": _Refusal(
        401,
        "unauthenticated",
        "the code is unknown, was used before or has expired; `resolute user sign-in-link` prints another",
    ),
    "password": _Refusal(
        401,
        "unauthenticated",
        "the name or the password is wrong, or the user has no password or is deactivated; "
        "an admin can set one with `resolute user change-password NAME`",
    ),
    "attempts": _Refusal(
        429,
        "resource_exhausted",
        "too many attempts to sign in as this user or from this address; try again in a minute",
    ),
    "refusal": _Refusal(
        403, "permission_denied", "the sign-in was refused; check what you entered, or ask an admin"
    ),
    "silence": _Refusal(
        503, "unavailable", "the service that knows the users does not answer; try again in a moment"
    ),
}
"""By the word that leads a browser back to the page with it."""


def page(*, provider: str, code: str, refused: str) -> str:
    """The form as a document.

    Args:
        provider: Markup of the link to the provider; empty for none.
        code: A one-time code that a link brings along; empty for none.
        refused: The word for why the last attempt was refused; empty for none.
    """
    known = _REFUSALS.get(refused)
    name = html.escape(_user_of(code))
    return _PAGE.format(
        code=html.escape(code),
        message="" if known is None else html.escape(known.message),
        provider=provider,
        whose=f"<p>This code begins a session of the user <b>{name}</b>.</p>\n" if name else "",
        user=f" as {name}" if name else "",
        by_name="" if name else _BY_NAME,
    )


async def sent(request: Request) -> Mapping[str, str]:
    """The fields that a form sends; none if the body is no form, is too long, or does not come.

    Args:
        request: What sends it.
    """
    if not request.headers.get("content-type", "").startswith(KIND):
        return {}
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _LONGEST_BODY:
                return {}
    except ClientDisconnect:
        return {}
    try:
        sent = parse_qs(body.decode("latin-1"), max_num_fields=10)
    except ValueError:
        return {}
    return {name: values[0] for name, values in sent.items()}


def refused(why: str, request: Request, *, error: ResoluteError | None = None) -> Response:
    """The refusal of a sign-in: pages are led back to the form, which says why.

    Args:
        why: The word for it.
        request: The attempt.
        error: What says it better than the word to what is no page; None for nothing.
    """
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"sign-in?refused={why}", 303)
    return refusal_of(why) if error is None else refusal_by(error)


def refusal_of(why: str) -> Response:
    """A refusal for what is no page.

    Args:
        why: The word for it.
    """
    known = _REFUSALS[why]
    return refusal(known.status, code=known.code, message=known.message)


def _user_of(code: str) -> str:
    """Whose session a code begins, if it can be valid; with another name it would be another code."""
    named = _CODE.fullmatch(code)
    return "" if named is None else named["user"]

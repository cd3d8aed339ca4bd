"""Names of users, workspaces and projects."""

from __future__ import annotations

import re

from resolute_serving.validation import invalid

MAX_LABEL_LENGTH = 80
_USER_NAME = re.compile(r"[\w.@][\w.@-]{0,127}", re.ASCII)


def is_user_name(name: str) -> bool:
    """Whether users may have this name: 1 to 128 letters, digits and ``. _ - @``, with no dash first."""
    return _USER_NAME.fullmatch(name) is not None


def check_label(name: str, *, field: str) -> None:
    """Checks the name of a workspace or a project.

    Raises:
        InvalidArgumentError: It is not one.
    """
    if not name.strip() or len(name) > MAX_LABEL_LENGTH or not name.isprintable():
        raise invalid(
            field,
            f"{name[:200]!r} is not a valid name: 1 to {MAX_LABEL_LENGTH} printable characters, not blank",
        )

"""Creates records of media, after checking the limits of the service."""

from __future__ import annotations

from typing import Any

from resolute.contracts.spool.format import MAX_NAME_LENGTH, Media
from resolute.contracts.spool.media_formats import MediaKind, content_type
from resolute.contracts.unicode_text import valid_unicode
from resolute.errors import InvalidArgumentError

MAX_CAPTION = 1000
"""Characters that are kept of a caption."""


def new_media(kind: MediaKind, *, name: Any, steps: int, time: float, content: bytes, caption: Any) -> Media:
    """Makes a record.

    Raises:
        InvalidArgumentError: The name is no text of 1 to 500 characters of Unicode, or the content is too
            large or of no format of its kind.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH or name != _stored(name):
        raise InvalidArgumentError(
            f"the name is not text of 1 to {MAX_NAME_LENGTH} characters of Unicode; name it so"
        )
    content_type(kind, content)
    return Media(
        name=name,
        kind=kind.value,
        steps=steps,
        time=time,
        content=content,
        caption=_stored(str(caption)[:MAX_CAPTION]),
    )


def _stored(text: str) -> str:
    """The text as messages and databases take it."""
    return valid_unicode(text.replace("\0", "\ufffd"))

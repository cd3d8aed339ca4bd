"""Makes errors fit into HTTP/2 headers: short enough, and with text that can be encoded.

gRPC sends the status of a call in headers, of which clients accept 8 KiB. A longer status, such as that of a
config with thousands of faults, would not arrive: clients would get an internal error instead. The same
applies to a status with half of a surrogate pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from resolute.errors import Violation

_MESSAGE_BYTES = 1500
_VIOLATIONS_BYTES = 2500
_VIOLATION_CHARACTERS = 400
_FIELD_CHARACTERS = 200
_METADATA_BYTES = 600


def bounded_message(text: str) -> str:
    """Cuts a message that is too long; it then says how much of it is missing."""
    text = _encodable(text)
    # A header carries bytes that are no printable ASCII as three characters each.
    if len(text) <= _MESSAGE_BYTES and len(quote(text, safe=_PRINTABLE)) <= _MESSAGE_BYTES:
        return text
    kept = _prefix(text, _MESSAGE_BYTES)
    return f"{kept}… and {len(text) - len(kept)} more characters"


def bounded_violations(violations: Iterable[Violation]) -> list[Violation]:
    """Keeps the first violations; where some are left out, a last one says how many."""
    shown: Sequence[Violation] = list(violations)
    kept: list[Violation] = []
    size = 0
    for violation in shown:
        short = Violation(
            _cut(violation.field, _FIELD_CHARACTERS), _cut(violation.description, _VIOLATION_CHARACTERS)
        )
        size += len(f"{short.field}{short.description}".encode()) + 8
        if kept and size > _VIOLATIONS_BYTES:
            return [*kept, Violation("", f"and {len(shown) - len(kept)} more")]
        kept.append(short)
    return kept


def bounded_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Cuts values that are too long."""
    most = _METADATA_BYTES // max(1, len(metadata))
    return {key: _prefix(_encodable(value), most) for key, value in metadata.items()}


_PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))


def _cut(text: str, characters: int) -> str:
    text = _encodable(text)
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def _encodable(text: str) -> str:
    """Writes halves of surrogate pairs as escape sequences."""
    return text.encode("utf-8", "backslashreplace").decode()


def _prefix(text: str, most: int) -> str:
    """The longest beginning of a text that takes at most so many bytes in a header."""
    kept = text[:most]
    while (size := len(quote(kept, safe=_PRINTABLE))) > most:
        kept = kept[: max(len(kept) * most // size - 1, 0)]
    return kept

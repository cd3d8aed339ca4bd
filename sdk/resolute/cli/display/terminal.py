"""The boundary to the terminal: text from other users and from trials must not control it.

Names, log lines and errors come from trials and from other users. Escape sequences in them could clear the
screen, change the clipboard or overwrite what another command printed. Everything that a command prints
therefore passes :func:`neutralised`, which keeps line ends, tabs and colours, and replaces every other
control character by a visible one.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import TextIO

_COLOUR = r"\x1b\[[0-9;:]*m"
_HIDING = {"5", "6", "8", "58"}
"""Blinking, slow and fast, and concealed. Older terminals do not know the colour of underlines, 58, and take
the 5 and the 8 in it for these."""
_COLOUR_FOLLOWS = {"38", "48", "58"}
_COLOUR_WIDTHS = {"5": 3, "2": 5}
_RESET = "\x1b[0m"
# C0 without tab and line feed, DEL and C1, then what changes the direction or the end of a line, then halves
# of surrogate pairs, which cannot be encoded.
_UNSAFE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROLS = re.compile(f"({_COLOUR})|([{_UNSAFE}])")


def neutralised(text: str, *, colours: bool = False) -> str:
    r"""Makes the control characters of a text visible, so that a terminal does not obey them.

    Args:
        text: Any text.
        colours: Whether sequences that set colours stay. They end with the text.

    Returns:
        The text. Control characters below 32 are replaced by their pictures, such as ``␛``, others by
        ``\uXXXX``, which JSON reads as the same character.
    """
    if _CONTROLS.search(text) is None:
        return text
    last = _RESET

    def visible(match: re.Match[str]) -> str:
        nonlocal last
        shown = _visible(match, colours=colours)
        last = shown if colours and match[1] is not None and shown else last
        return shown

    shown = _CONTROLS.sub(visible, text)
    if last in {_RESET, "\x1b[m"}:
        return shown
    body = shown.rstrip("\n")
    return f"{body}{_RESET}{shown[len(body) :]}"


def _visible(match: re.Match[str], *, colours: bool) -> str:
    text = match[0]
    if match[1] is not None:
        return _without_hiding(text) if colours else f"\u241b{text[1:]}"
    code = ord(text)
    return chr(0x2400 + code) if code < 0x20 else f"\\u{code:04x}"


def _without_hiding(sequence: str) -> str:
    """A sequence that sets colours, without what hides the text after it or lets it blink."""
    parameters = sequence[2:-1].split(";")
    kept: list[str] = []
    while parameters:
        # 38, 48 and 58 are followed by a colour: 5 and its number, or 2 and three numbers.
        colour = parameters[0] in _COLOUR_FOLLOWS and len(parameters) > 1
        width = _COLOUR_WIDTHS.get(parameters[1], 1) if colour else 1
        if parameters[0].partition(":")[0].lstrip("0") not in _HIDING:
            kept += parameters[:width]
        del parameters[:width]
    return f"\x1b[{';'.join(kept)}m" if kept else ""


class NeutralisingStream:
    """A text stream that neutralises text and passes it to another stream. All other calls go to that stream.

    Args:
        original: The stream that receives the text.
    """

    def __init__(self, original: TextIO) -> None:
        self.original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)

    def write(self, text: str) -> int:
        """Writes a text."""
        self.original.write(neutralised(text, colours=True))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Writes texts."""
        for text in texts:
            self.write(text)


def direct(stream: TextIO) -> TextIO:
    """The stream behind a neutralising one: for text that was neutralised and may move the cursor."""
    return stream.original if isinstance(stream, NeutralisingStream) else stream


def for_programs() -> TextIO:
    """Where data for programs goes: unchanged, unless a person looks."""
    return sys.stdout if sys.stdout.isatty() else direct(sys.stdout)


@contextlib.contextmanager
def neutralised_output() -> Iterator[None]:
    """Neutralises all that is written to stdout and stderr within a block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", NeutralisingStream(direct(stream))) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before

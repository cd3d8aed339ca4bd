"""Patterns that select files of a checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from resolute_serving.validation import invalid_field

MAX_GLOBS = 100
"""Most patterns of one request."""
_TOKENS = re.compile(
    r"(?P<folders>(?:^|(?<=/))\*\*/)|(?P<rest>\*\*)|(?P<star>\*)|(?P<one>\?)|(?P<set>\[!?\]?[^\]]*\])|(?P<text>.)",
    re.DOTALL,
)


def compile_globs(globs: Sequence[str]) -> Callable[[str], bool]:
    """Returns a function that tests whether a path matches one of some patterns.

    ``*`` and ``?`` stop at slashes, ``**`` does not, ``**/`` stands for any folders or none, and ``[…]`` for
    one of some characters. A pattern must match the whole path; a trailing slash does not count.

    Raises:
        InvalidArgumentError: A pattern is empty, absolute or climbs out, or there are too many.
    """
    if len(globs) > MAX_GLOBS:
        raise invalid_field("globs", f"has {len(globs)} patterns; at most {MAX_GLOBS} are taken at once")
    patterns = [_compile(glob, field=f"globs[{index}]") for index, glob in enumerate(globs)]
    return lambda path: any(pattern.fullmatch(path.removesuffix("/")) for pattern in patterns)


def _compile(glob: str, *, field: str) -> re.Pattern[str]:
    plain = glob.removesuffix("/")
    if not plain or glob.startswith("/") or ".." in glob.split("/"):
        raise invalid_field(
            field, f"is {glob!r}; write a pattern relative to the checkpoint, such as '**/*.pt'"
        )
    return re.compile("".join(_translate(match) for match in _TOKENS.finditer(plain)), re.DOTALL)


def _translate(match: re.Match[str]) -> str:
    text = match.group()
    if match["folders"]:
        return "(?:[^/]+/)*"
    if match["rest"]:
        return ".*"
    if match["star"]:
        return "[^/]*"
    if match["one"]:
        return "[^/]"
    if match["set"]:
        inside = text[1:-1]
        negated = inside.startswith("!")
        escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[1:] if negated else inside)
        return f"(?!/)[{'^' if negated else ''}{escaped}]"
    return re.escape(text)

"""Regular expressions from users.

They run in RE2, not in ``re``: a pattern such as ``(a|aa)+$`` would block ``re``, and with it every service
of the process, for hours. The time of RE2 is linear in the line, and its memory is bounded. It lacks
backreferences and lookaround.
"""

from __future__ import annotations

import re2

from resolute_serving.validation import invalid

MAX_LENGTH = 1000
"""Most characters of a pattern."""
_MAX_MEMORY = 1 << 20


class Pattern:
    """A regular expression that is searched for in lines.

    Args:
        text: The expression, in RE2's syntax.
        field: Name of the request field, for errors.

    Raises:
        InvalidArgumentError: The expression is too long, too large once compiled, or invalid.
    """

    def __init__(self, text: str, *, field: str = "filter.regex") -> None:
        if len(text) > MAX_LENGTH:
            raise invalid(field, f"the regular expression is longer than {MAX_LENGTH} characters")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MAX_MEMORY
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
            raise invalid(
                field, f"{text!r} is not a regular expression that can be searched for: {reason}"
            ) from error

    def matches(self, line: str) -> bool:
        """Returns whether a part of a line matches."""
        # As bytes, because the binding counts characters of text, which is not needed.
        return self._compiled.search(line.encode()) is not None

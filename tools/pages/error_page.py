"""Writes docs/errors.md, what each reason of an error means; ``--check`` compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from resolute.cli.registry.error_reasons import ERROR_REASONS

PAGE = Path(__file__).parents[2] / "docs/errors.md"
_HEAD = """\
# Errors by their reason

<!-- Written by tools/pages/error_page.py from sdk/resolute/cli/registry/error_reasons.py. -->

Every error of a service has a reason, which programs read from `ErrorInfo` (domain `resolute`) and Python
has as the class of the exception and its `reason`. The message itself names the object, what is wrong and
the remedy; this page says what else helps. `resolute help errors REASON` prints the same.
"""


def page() -> str:
    """Returns the page."""
    parts = [_HEAD]
    for name, reason in ERROR_REASONS.items():
        parts.append(f"\n## {name}\n\n{reason.meaning}\n\n**Remedy.** {reason.remedy}\n")
    return re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", "".join(parts))


def main() -> int:
    """Writes the page, or says that it is not current."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() == page():
        return 0
    print(f"{PAGE} is not current: run tools/pages/error_page.py")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())

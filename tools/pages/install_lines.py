"""Lets every line of a page that installs Resolute begin from SOURCE; ``--check`` compares.

On the day of the first release on an index, SOURCE becomes `resolute-train`, and this is run once.
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = "."
"""A clone, or `resolute-train`."""
ROOT = Path(__file__).parents[2]
LINE = re.compile(r"(?P<pip>\bpip install (?:--\S+ )*)'(?:\.|resolute-train)(?P<extras>\[[a-z0-9,]+\])?'")
"""What pages have: the source and its extras between quotes."""


def pages() -> list[Path]:
    """The pages that users read."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "sdk/resolute/cli/registry/error_reasons.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    kept = ("CHANGELOG.md", "changelog.d/", "docs/adr/")
    return [ROOT / name for name in listed if not name.startswith(kept)]


def main() -> None:
    """Writes the pages, or compares them."""
    for page in pages():
        text = page.read_text()
        wanted = LINE.sub(rf"\g<pip>'{SOURCE}\g<extras>'", text)
        if wanted == text:
            continue
        if "--check" in sys.argv[1:]:
            sys.exit(
                f"{page}: a line installs from elsewhere than {SOURCE}; run tools/pages/install_lines.py"
            )
        page.write_text(wanted)


if __name__ == "__main__":
    main()

"""A part of a page that a tool writes: replaced, or with ``--check`` compared."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class GeneratedSection:
    """The text between two lines of a page."""

    page: str
    """From the root of the project."""
    begin: str
    end: str
    remedy: str
    """The command that writes it."""

    def update(self, content: str) -> None:
        """Writes the content into the page; with ``--check`` exits with an error if the page has another."""
        if "--check" not in sys.argv[1:]:
            (ROOT / self.page).write_text(self._with(content))
        elif not self.holds(content):
            sys.exit(f"{self.page} differs from what {sys.argv[0]} writes; run `{self.remedy}`")

    def holds(self, content: str) -> bool:
        """Whether the page has this content."""
        return self._with(content) == (ROOT / self.page).read_text()

    def _with(self, content: str) -> str:
        before, _, rest = (ROOT / self.page).read_text().partition(self.begin)
        _, _, after = rest.partition(self.end)
        return f"{before}{self.begin}\n{content}\n{self.end}{after}"

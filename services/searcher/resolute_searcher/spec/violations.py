"""The violations of a request, each with its path."""

from __future__ import annotations

from resolute.errors import InvalidArgumentError, Violation


class Violations:
    """Collects violations, so that the user sees all of them at once."""

    def __init__(self) -> None:
        self.found: list[Violation] = []

    def add(self, path: str, problem: str) -> None:
        """Adds a violation.

        Args:
            path: Where, as field names joined by dots.
            problem: What was expected and what was found.
        """
        self.found.append(Violation(field=path, description=problem))

    def require(self, holds: bool, path: str, problem: str) -> None:
        """Adds a violation unless a condition holds."""
        if not holds:
            self.add(path, problem)

    def raise_if_any(self, what: str) -> None:
        """Raises an error if there are violations.

        Args:
            what: The thing that was looked at, such as "search spec".

        Raises:
            InvalidArgumentError: It lists them all.
        """
        if self.found:
            listed = "; ".join(str(violation) for violation in self.found)
            raise InvalidArgumentError(f"the {what} is wrong: {listed}", violations=self.found)

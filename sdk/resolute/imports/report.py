"""The report of an import: what it imported, what was here before, and what cannot be imported."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import final

from resolute.errors import AuthError, ResoluteError, UnavailableError

_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading raises where a message of the other cluster has not the form that is known."""


@dataclass
class Counts:
    """The counts of one kind of object."""

    new: int = 0
    """Brought by this call."""
    known: int = 0
    """Here before."""
    sent: int = 0
    """Sent by this call: what an import that broke off had brought is among it, and is not doubled."""


@final
@dataclass
class Report:
    """Counts and remarks. Threads may share it."""

    counts: dict[str, Counts] = field(default_factory=dict)
    """By kind, in the order in which they came."""
    remarks: Counter[str] = field(default_factory=Counter)
    """What has no place here, or came otherwise, with how often."""
    failures: list[str] = field(default_factory=list)
    """What could not be brought, and why: the same import brings it once that is mended."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, kind: str, *, new: int = 0, known: int = 0, sent: int = 0) -> None:
        """Counts things."""
        with self._lock:
            counts = self.counts.setdefault(kind, Counts())
            counts.new += new
            counts.known += known
            counts.sent += sent

    def remark(self, text: str, count: int = 1) -> None:
        """Notes what has no place here; equal remarks are counted."""
        if count:
            with self._lock:
                self.remarks[text] += count

    def fail(self, what: str, reason: object) -> None:
        """Notes what could not be brought."""
        with self._lock:
            self.failures.append(f"{what}: {reason}")

    @contextmanager
    def noting(self, what: str) -> Iterator[None]:
        """Notes why something could not be brought, and goes on.

        Where a cluster is away, or the user may not import, nothing goes on.
        """
        try:
            yield
        except (UnavailableError, AuthError):
            raise
        except ResoluteError as error:
            self.fail(what, error)
        except _ODD as error:
            self.fail(
                what, f"the other cluster tells it in an unknown form ({type(error).__name__}: {error})"
            )

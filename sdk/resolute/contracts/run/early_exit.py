"""The reason for which a trial's own code ended it early: ``early_exit.json``, which the supervisor reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from resolute.contracts.files.atomic_files import read_json, write_json

_PREFIX = "EARLY_EXIT_REASON_"
_PREFIXES = ("EXITED_REASON_", _PREFIX)
"""What scripts of different releases write before the name."""
_ANY = "surrogatepass"
"""JSON of scripts may hold half a character."""
_LONGEST = 500
"""Characters that are kept of a message, the first ones."""


@dataclass(frozen=True, slots=True)
class EarlyExit:
    """The reason that the code of a trial gave before it exited."""

    reason: str = ""
    """Name of an ``EarlyExitReason`` without its prefix, such as ``INVALID_HP``; empty for none."""
    message: str = ""
    """Why, in the code's own words: one line; empty when it did not say."""

    @classmethod
    def read(cls, path: Path, *, mask: Callable[[bytes], bytes] = bytes) -> EarlyExit:
        """Reads what was left; what is none counts as none, since scripts can write to the directory.

        Args:
            path: The file.
            mask: Replaces secrets in a text of UTF-8, where the run has some. The message is masked before it
                is cut: half a secret is one too.
        """
        try:
            content = read_json(path) or {}
        except (OSError, ValueError):
            return cls()
        reason, message = content.get("reason"), content.get("message")
        name = reason if isinstance(reason, str) else ""
        for prefix in _PREFIXES:
            name = name.removeprefix(prefix)
        if name not in _reasons():
            return cls()
        text = message if isinstance(message, str) else ""
        return cls(name, _line(mask(text.encode(errors=_ANY)).decode(errors=_ANY)))

    def write(self, path: Path) -> None:
        """Leaves it so that it survives a crash of the machine once this returns."""
        write_json(path, asdict(self), sync=True)


@cache
def _reasons() -> frozenset[str]:
    # Only who reads needs the contract: a rank starts without it.
    from resolute.api.experiments.v1.allocations_service_pb2 import EarlyExitReason

    return frozenset(name.removeprefix(_PREFIX) for name in EarlyExitReason.keys()[1:])


def _line(text: str) -> str:
    """Makes one line of a text that others wrote: no control characters, not too long."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"

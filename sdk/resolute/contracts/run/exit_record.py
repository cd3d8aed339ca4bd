"""The exit record of a run's container: ``exit.json``, written before the exit is reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from resolute.api.experiments.v1.allocations_service_pb2 import EarlyExitReason
from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.contracts.run.gpu_usage import GpuUsage
from resolute.contracts.unicode_text import valid_unicode

_REASONS = frozenset({"", *(name.removeprefix("EARLY_EXIT_REASON_") for name in EarlyExitReason.keys()[1:])})
_LARGEST_CODE = 2**31 - 1
_FAILED_LAUNCH = 125
"""What shells and container engines exit with when they cannot start something."""
_KILLED = 137
"""The exit code of what SIGKILL ended."""
_LATEST_TIME = 253402300799.0
"""The end of the year 9999, beyond which no date goes."""
_LONGEST_FAILURE = 64 * 1024
"""Characters that are kept of what failed, the last ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRecord:
    """The end of a run, as the supervisor saw it."""

    exit_code: int
    """Exit code of the entrypoint; 128 + n when signal n ended it."""
    acknowledged: bool = False
    """Whether the trial acknowledged the signal as the reason of its exit, or has no operation left."""
    early_exit_reason: str = ""
    """Why its own code ended early, such as ``INVALID_HP``; empty when it did not say."""
    failure: str = ""
    """What failed, for people: the reason that its code gave when it ended early, else the last lines of the
    first failing rank; else empty."""
    failed_before_entrypoint: bool = False
    """Whether the entrypoint never ran: fetching, the hook or the rendezvous failed."""
    end_time: float = 0.0
    """Unix time of the end; of a failure, when the first rank failed where that is known."""
    initialized_at: float = 0.0
    """Unix time at which its script had initialized the Core API; zero if it never did."""
    gpu_usage: GpuUsage | None = None
    """What its GPUs did; None if nothing was measured."""
    left_out: tuple[str, ...] = ()
    """What was left out of its reports, for people: one text for each kind."""

    @classmethod
    def withdrawn(cls) -> ExitRecord:
        """The end of what had to end before it began: nothing ran, so nothing was lost."""
        return cls(exit_code=0, acknowledged=True)

    @classmethod
    def failed_launch(cls, why: object) -> ExitRecord:
        """The end of what could not be launched."""
        return cls(exit_code=_FAILED_LAUNCH, failure=f"the run could not be started: {why}")

    @classmethod
    def out_of_memory(cls, passed: str, *, remedy: str, end_time: float = 0.0) -> ExitRecord:
        """The end of what passed its memory limit, by its engine's word: its supervisor was killed with it.

        Args:
            passed: Names the limit.
            remedy: Which setting raises it, as a request.
            end_time: Unix time of the end; zero where that is not known.
        """
        return cls(
            exit_code=_KILLED,
            failure=(
                f"the run was killed for lack of memory: it used more than {passed}; {remedy}, or use "
                "smaller batches or fewer workers of data loaders"
            ),
            end_time=end_time,
        )

    @classmethod
    def read(cls, path: Path) -> ExitRecord | None:
        """Reads a record, or returns None if there is none.

        Raises:
            ValueError: The file holds something else.
        """
        content = read_json(path)
        try:
            return None if content is None else cls.parse(content)
        except ValueError as failure:
            raise ValueError(f"{path} holds no exit record: {failure}") from failure

    @classmethod
    def parse(cls, content: object) -> ExitRecord:
        """Reads a record that came as JSON: any process in the container may have written it.

        Fields that are not known, as a later version may have, are left out.

        Raises:
            ValueError: It has values that none has.
        """
        if not isinstance(content, Mapping) or "exit_code" not in content:
            raise ValueError("it is not an object with an exit_code")
        known = {name: value for name, value in content.items() if name in _FIELDS}
        for name, value in known.items():
            if not _FIELDS[name](value):
                raise ValueError(f"its {name} is {value!r:.100}")
        usage = GpuUsage.parse(content.get("gpu_usage"))
        # What a program printed may hold NUL and halves of characters, which databases refuse.
        failure = known.get("failure", "")[-_LONGEST_FAILURE:]
        known["failure"] = _storable(failure)
        known["left_out"] = tuple(map(_storable, known.get("left_out", ())))
        return cls(**known, gpu_usage=usage)

    def write(self, path: Path) -> None:
        """Writes the record so that it survives a crash of the machine once this returns."""
        write_json(path, asdict(self), sync=True)


def _storable(text: str) -> str:
    return valid_unicode(text.replace("\0", "\ufffd"))


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_time(value: object) -> bool:
    # NaN is in no range.
    return type(value) in (int, float) and 0 <= value <= _LATEST_TIME  # type: ignore[operator]


_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "exit_code": lambda code: type(code) is int and -_LARGEST_CODE <= code <= _LARGEST_CODE,
    "acknowledged": _is_flag,
    "early_exit_reason": lambda reason: isinstance(reason, str) and reason in _REASONS,
    "failure": lambda failure: isinstance(failure, str),
    "failed_before_entrypoint": _is_flag,
    "end_time": _is_time,
    "initialized_at": _is_time,
    "left_out": lambda texts: isinstance(texts, list) and all(isinstance(text, str) for text in texts),
}
"""What the value of each field must be."""

"""How a container's part of a run ended: ``exit.json`` of the run directory, there before anyone is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.contracts.run.gpu_usage import GpuUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRecord:
    """The end of a run, as the supervisor saw it."""

    exit_code: int
    """Exit code of the entrypoint; 128 + n when signal n ended it."""
    acknowledged: bool = False
    """Whether the trial said that it exits because of the signal, or has no operation left."""
    early_exit_reason: str = ""
    """Why its own code ended early, such as ``INVALID_HP``; empty when it did not say."""
    failure: str = ""
    """What failed, for people: the last words of the first failing rank; empty for an exit 0."""
    failed_before_entrypoint: bool = False
    """Whether the entrypoint never ran: fetching, the hook or the rendezvous failed."""
    end_time: float = 0.0
    """Unix time of the end; of a failure, when the first rank failed where that is known."""
    initialized_at: float = 0.0
    """Unix time at which its script had initialized the Core API; zero if it never did."""
    gpu_usage: GpuUsage | None = None
    """What its GPUs did; None if nothing was measured."""

    @classmethod
    def read(cls, path: Path) -> ExitRecord | None:
        """Reads a record, or returns None if there is none.

        Raises:
            ValueError: The file holds something else.
        """
        content = read_json(path)
        if content is None:
            return None
        known = {field.name for field in fields(cls)}
        try:
            usage = GpuUsage.from_json(content.pop("gpu_usage", None))
            return cls(**{key: value for key, value in content.items() if key in known}, gpu_usage=usage)
        except TypeError as failure:
            raise ValueError(f"{path} holds no exit record: {failure}") from failure

    def write(self, path: Path) -> None:
        """Writes the record so that it survives a crash of the machine once this returns."""
        write_json(path, asdict(self), sync=True)

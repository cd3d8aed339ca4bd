"""The record of a promotion: ``promotion.json`` with its identifiers, written before anything is sent.

An interrupted promotion is continued by the next call with the same identifiers.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.contracts.run.lock import RunLock
from resolute.errors import ConflictError, DataLossError

_FILE = "promotion.json"


@dataclass(frozen=True, kw_only=True)
class Request:
    """The submission of the experiment that continues. A repetition with another config would be refused."""

    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """Makes it repeatable; clusters remember it for a day only."""
    config: str
    """What is submitted: JSON."""
    paused: bool = False
    """Whether it is to be created paused."""
    experiment: str = ""
    """UUID of the experiment, once the cluster has answered."""
    warnings: list[str] = field(default_factory=list)
    """What the cluster answered besides."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt to copy one checkpoint, with its trial's history, to one cluster."""

    checkpoint: str
    """UUID of the original."""
    steps: int
    """Steps in it."""
    copy_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """UUID of the copy."""
    renamed_from: str = ""
    """UUID that the files of the copy may still have; empty when they have the new one."""
    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    """UUID of the run there that has the history."""
    requests: dict[str, Request] = field(default_factory=dict)
    """Submissions of experiments that go on, by their changes of the config."""
    trial: int = 0
    """Number there of the trial with the history, once everything has arrived and was compared."""
    refusals: list[str] = field(default_factory=list)
    """Why single reports were not kept there."""

    @classmethod
    def load(cls, directory: Path) -> Attempt | None:
        """Reads it; None if there is none.

        Raises:
            DataLossError: The file holds something else.
        """
        content = read_json(directory / _FILE)
        try:
            if content is None:
                return None
            requests = {changes: Request(**one) for changes, one in content.pop("requests").items()}
            return cls(**content, requests=requests)
        except (AttributeError, KeyError, TypeError) as error:
            raise DataLossError(
                f"{directory / _FILE} describes no promotion ({error}); remove {directory} to begin anew"
            ) from error

    def save(self, directory: Path) -> Attempt:
        """Writes it; returns it."""
        write_json(directory / _FILE, asdict(self), sync=True)
        return self

    def request(self, overrides: Sequence[str]) -> Request | None:
        """The submission with these changes of the config, if there was one."""
        return self.requests.get(json.dumps(list(overrides)))

    def with_request(self, overrides: Sequence[str], request: Request) -> Attempt:
        """The same with a submission with these changes of the config."""
        return replace(self, requests={**self.requests, json.dumps(list(overrides)): request})


def forget(directory: Path) -> None:
    """Removes an attempt and what it has brought here, so that the next call begins anew."""
    (directory / _FILE).unlink(missing_ok=True)
    remove_files(directory)


def remove_files(directory: Path) -> None:
    """Removes what an attempt has brought here."""
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keeps other commands from the same promotion.

    Raises:
        ConflictError: One is at it.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        lock = RunLock.acquire(directory / "lock")
    except ConflictError:
        raise ConflictError(
            "the trial is being promoted to that cluster by another command; wait for its end"
        ) from None
    try:
        yield
    finally:
        lock.release()

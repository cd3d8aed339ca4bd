"""Checkpoints, their files, and the storages of the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from resolute.errors import IllegalTransitionError


class State(Enum):
    """The state of a checkpoint."""

    UPLOADING = "uploading"
    COMPLETED = "completed"
    PARTIALLY_DELETED = "partially_deleted"
    DELETING = "deleting"
    DELETED = "deleted"
    ABORTED = "aborted"

    @property
    def has_files(self) -> bool:
        """Whether it is committed and can be read."""
        return self in READABLE

    @property
    def was_committed(self) -> bool:
        """Whether it was ever visible."""
        return self not in {State.UPLOADING, State.ABORTED}


READABLE = frozenset({State.COMPLETED, State.PARTIALLY_DELETED})
"""States in which a checkpoint can be read."""


LIVE = READABLE | {State.UPLOADING}
"""States in which a checkpoint needs its files."""


@dataclass(frozen=True, slots=True, order=True)
class Home:
    """The checkpoint under which the bytes of a file are stored."""

    checkpoint_id: str
    """The checkpoint that uploaded them; they are stored under its name, also after it was deleted."""
    path: str
    """Their path there."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a checkpoint, or one directory."""

    path: str
    """Relative, parts joined by slashes; directories end in one."""
    size: int
    """Bytes."""
    digest: str = ""
    """``algorithm:hex`` of the content; empty when the writer did not read it, and for directories."""
    home: Home | None = None
    """Where the bytes are stored, when an earlier checkpoint has uploaded them; None for the checkpoint's own
    name."""

    def home_in(self, checkpoint_id: str) -> Home:
        """Returns where the bytes of the file are stored: its home, or its path in that checkpoint."""
        return self.home or Home(checkpoint_id, self.path)

    @property
    def is_directory(self) -> bool:
        """Whether the entry is a directory."""
        return self.path.endswith("/")


@dataclass(frozen=True, slots=True)
class DirectoryStorage:
    """A directory that trials and the service see under the same path."""

    path: str


class Provider(Enum):
    """The kind of an object store, by its API."""

    S3 = "s3"
    GCS = "gcs"
    AZURE = "azure"


@dataclass(frozen=True, slots=True)
class BucketStorage:
    """A bucket of an object store."""

    bucket: str
    """Its name; for Azure that of the container."""
    prefix: str = ""
    endpoint_url: str = ""
    """Address of the store; empty for the provider's own, and for Azure for the service's account."""
    provider: Provider = Provider.S3


Storage = DirectoryStorage | BucketStorage
"""Where the checkpoints of an experiment are stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The trial, run and experiment that wrote a checkpoint. Fields that do not apply are empty."""

    trial_id: str = ""
    experiment_id: str = ""
    run: int = 0
    """From 1; zero when no trial wrote it."""
    workspace: str = ""
    """Name of the workspace when the checkpoint was begun."""
    workspace_id: int | None = field(default=None, compare=False)
    """None for rows from before workspaces were named by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A directory of files with metadata."""

    checkpoint_id: str
    state: State
    owner: Owner
    storage: Storage
    create_time: float
    """Seconds since 1970."""
    commit_time: float | None = None
    """Seconds since 1970; None before it was committed."""
    steps_completed: int = 0
    total_size: int = 0
    files: tuple[File, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    manifest_digest: str = ""
    """Identifies what was committed; empty before."""
    file_count: int = 0
    """Files and directories that were committed and are left, also where they are not listed."""
    pinned: bool = False
    """Whether nothing deletes it until it is unpinned."""
    revision: int = 0
    """Grows with each update."""
    inherited: bool = False
    """Whether it was written before the cluster was restored or copied: the original may need its files, so
    nothing removes them until they are taken over."""
    keep_reasons: tuple[str, ...] = ()
    """Why retention kept it when it last looked."""

    def __str__(self) -> str:
        return f"checkpoint {self.checkpoint_id}"

    def cannot_become(self, state: State, *, remedy: str = "") -> IllegalTransitionError:
        """Returns the error for a transition that its state does not allow."""
        return IllegalTransitionError.between(
            str(self), from_state=self.state.value, to_state=state.value, remedy=remedy
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One committed checkpoint, with the data for retention."""

    checkpoint_id: str
    trial_id: str
    steps_completed: int
    metric: float | None = None
    """The searcher's metric, validated at the same step; None when there is none, and NaN counts as that."""
    validation_order: float = 0
    """Order of the validations, such as their time; the earlier of two equal ones is the better."""
    commit_time: float = 0.0
    """Seconds since 1970; the later of two at the same step is the latest."""
    complete: bool = True
    """Whether it has all its files, so that a trial can continue from it."""
    left_behind: bool = False
    """Whether its trial went back behind it, and does not continue from it."""
    ranked: bool = True
    """Whether every value that was reported before it could be superseded is known."""
    held: bool = False
    """Whether somebody reads it now."""
    kept: bool = False
    """Whether nothing deletes it: it is pinned, a version of a model, or inherited."""

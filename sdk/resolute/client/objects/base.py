"""The shared part of the objects of scripts: a record of the cluster that can be read again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from resolute.client.services import Services

RecordT = TypeVar("RecordT")


class RemoteObject(ABC, Generic[RecordT]):
    """An object of the cluster. Its attributes have the values of the last read.

    Args:
        services: The cluster.
        record: Its record on the cluster.
    """

    def __init__(self, services: Services, record: RecordT) -> None:
        self._services = services
        self._record = record

    def reload(self) -> None:
        """Reads it again."""
        self._record = self._read()

    @abstractmethod
    def _read(self) -> RecordT:
        """Asks the cluster for the record."""


class _Archived(Protocol):
    @property
    def archived(self) -> bool: ...


ArchivedT = TypeVar("ArchivedT", bound=_Archived)


class ArchivableObject(RemoteObject[ArchivedT]):
    """An object that can be archived."""

    @property
    def archived(self) -> bool:
        """Whether it is archived."""
        return self._record.archived

    def archive(self) -> None:
        """Archives it; ``unarchive`` undoes this."""
        self._record = self._set_archived(True)

    def unarchive(self) -> None:
        """Undoes ``archive``."""
        self._record = self._set_archived(False)

    @abstractmethod
    def _set_archived(self, archived: bool) -> ArchivedT:
        """Tells the cluster, and returns the record as it is then."""

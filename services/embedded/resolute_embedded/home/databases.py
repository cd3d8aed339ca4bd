"""Where the databases of a home are: files in it, or after a move one PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from resolute_embedded.home.notes import write_note


class HomeDatabases:
    """The databases of a home.

    Args:
        home: The home directory.
    """

    def __init__(self, home: Path) -> None:
        self.files = home / "databases"
        """One SQLite file a service."""
        self.files_before_move = home / "databases-before-move"
        """The files of SQLite of a moved home, which nothing uses any more."""
        self._moved = home / "database-url"

    @property
    def exist(self) -> bool:
        """Whether the home was ever served."""
        return self.are_moved or self.files.is_dir()

    @property
    def are_moved(self) -> bool:
        """Whether they are in PostgreSQL; the files of SQLite are those of before the move."""
        return self._moved.exists()

    def url(self, service: str) -> str:
        """URL of a service's database."""
        if self.are_moved:
            return self._moved.read_text().strip()
        from resolute_serving.database.urls import sqlite_url  # here: most commands need no database

        return sqlite_url(self.files / f"{service}.sqlite")

    def move_to(self, url: str) -> None:
        """Notes in which PostgreSQL database all services have theirs from now on."""
        write_note(self._moved, url)

    def set_files_aside(self) -> None:
        """Keeps releases that know no moved homes from serving the files of one. Safe to repeat.

        They would go on with the files, or make new ones: that ``databases`` is a file ends their start.
        """
        if self.files.is_dir():
            self.files.rename(self.files_before_move)
        if not self.files.exists():
            write_note(self.files, "The databases of this home are in PostgreSQL, see database-url.\n")

"""A user as scripts use it."""

from __future__ import annotations

from resolute.client.schema.accounts import UserRecord, UserRole
from resolute.client.services import Services


class User:
    """A person, or a program that acts for one.

    Attributes are as they were when the user was last read.

    Args:
        services: The cluster.
        record: What is known of it.
    """

    def __init__(self, services: Services, record: UserRecord) -> None:
        self._services = services
        self._record = record

    def __repr__(self) -> str:
        return f"User({self.username!r}, {self._record.role.value})"

    @property
    def username(self) -> str:
        """Name."""
        return self._record.name

    @property
    def role(self) -> UserRole:
        """What the user may do."""
        return self._record.role

    @property
    def admin(self) -> bool:
        """Whether the user runs the cluster."""
        return self._record.role is UserRole.ADMIN

    @property
    def active(self) -> bool:
        """Whether anybody may act as this user."""
        return self._record.active

    def set_role(self, role: UserRole) -> None:
        """Changes what the user may do; tokens of the user end."""
        self._record = self._services.access.update_user(self._record.id, role=role)

    def activate(self) -> None:
        """Lets the user in again."""
        self._record = self._services.access.update_user(self._record.id, active=True)

    def deactivate(self) -> None:
        """Lets nobody act as this user any more; tokens of the user end."""
        self._record = self._services.access.update_user(self._record.id, active=False)

    def change_password(self, new_password: str) -> None:
        """Sets the password; tokens of the user end."""
        self._services.access.set_password(self._record.id, new_password)

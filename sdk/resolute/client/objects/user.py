"""A user as scripts use it."""

from __future__ import annotations

from resolute.client.objects.base import RemoteObject
from resolute.client.objects.refused import refusal
from resolute.client.schema.accounts import UserRecord, UserRole


class User(RemoteObject[UserRecord]):
    """An account of a person or of a program.

    Examples:
        >>> from resolute import client
        >>> user = client.whoami()
        >>> user.username, user.admin
        ('admin', True)
    """

    remote = False
    """Always False, also for users of an OpenID provider."""
    display_name: str | None = None
    """Users have one name."""
    # Trials run as the user of the operating system who started the cluster.
    agent_uid: int | None = None
    agent_gid: int | None = None
    agent_user: str | None = None
    agent_group: str | None = None

    def __repr__(self) -> str:
        return f"User({self.username!r}, {self._record.role.value})"

    @property
    def user_id(self) -> int:
        """Identifies the user, whatever the name."""
        return self._record.id

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

    def _read(self) -> UserRecord:
        return self._services.access.get_user(self.user_id)

    def rename(self, new_username: str) -> None:
        """Changes the name; tokens of the user end.

        Raises:
            AlreadyExistsError: The name is taken.
        """
        self._record = self._services.access.update_user(self.user_id, name=new_username)

    def change_display_name(self, display_name: str) -> None:
        """Refused: users have one name."""
        raise refusal("change_display_name", "users have one name; rename() changes it")

    def link_with_agent(
        self,
        agent_uid: int | None = None,
        agent_gid: int | None = None,
        agent_user: str | None = None,
        agent_group: str | None = None,
    ) -> None:
        """Refused: all trials run as the same user of the operating system."""
        raise refusal(
            "link_with_agent", "trials run as the user of the operating system who started the cluster"
        )

    def set_role(self, role: UserRole) -> None:
        """Changes what the user may do; tokens of the user end."""
        self._record = self._services.access.update_user(self._record.id, role=role)

    def activate(self) -> None:
        """Lets the user in again."""
        self._record = self._services.access.update_user(self._record.id, active=True)

    def deactivate(self) -> None:
        """Ends sign-in and tokens of this user."""
        self._record = self._services.access.update_user(self._record.id, active=False)

    def change_password(self, new_password: str) -> None:
        """Sets the password; tokens of the user end."""
        self._services.access.set_password(self._record.id, new_password)

"""The ``integrations`` section: other systems that an experiment is connected with."""

from __future__ import annotations

from typing import ClassVar

from resolute.contracts.documents.section import Flag, Int, Name, Section, Text


class PachydermServer(Section):
    """Where Pachyderm answers.

    Attributes:
        host: Name of the host.
        port: Its port.
        token: Token of the server.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"token"})

    host: Text | None = None
    port: Int | Text | None = None
    token: Text | None = None


class PachydermProxy(Section):
    """Where Pachyderm's proxy answers.

    Attributes:
        scheme: Such as ``https``.
        host: Name of the host.
        port: Its port.
    """

    scheme: Text | None = None
    host: Text | None = None
    port: Int | Text | None = None


class PachydermDataset(Section):
    """The data that an experiment is made from.

    Attributes:
        project: Project.
        repo: Repository.
        commit: Commit.
        branch: Branch.
        token: Token to read it with.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"token"})

    project: Text | None = None
    repo: Text | None = None
    commit: Text | None = None
    branch: Text | None = None
    token: Text | None = None


class Pachyderm(Section):
    """The data in Pachyderm that an experiment is made from; read back by the client.

    Attributes:
        pachd: The server.
        proxy: The proxy.
        dataset: The data.
        project: Project, as earlier releases gave the data.
        repo: Repository, likewise.
        branch: Branch, likewise.
        previous_commit: The commit before, likewise.
    """

    pachd: PachydermServer | None = None
    proxy: PachydermProxy | None = None
    dataset: PachydermDataset | None = None
    project: Text | None = None
    repo: Text | None = None
    branch: Text | None = None
    previous_commit: Text | None = None


class Webhooks(Section):
    """Which webhooks are called for an experiment.

    Attributes:
        webhook_id: Numbers of webhooks.
        webhook_name: Names of webhooks.
        exclude: Whether none is called.
    """

    webhook_id: tuple[Int, ...] | None = None
    webhook_name: tuple[Name, ...] | None = None
    exclude: Flag = False


class Integrations(Section):
    """What other systems have to do with an experiment.

    Attributes:
        pachyderm: The data that it is made from.
        webhooks: The webhooks that are called for it.
    """

    pachyderm: Pachyderm | None = None
    webhooks: Webhooks | None = None

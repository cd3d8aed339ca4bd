"""The ``integrations`` section: connections of an experiment to other systems."""

from __future__ import annotations

from typing import ClassVar

from resolute.contracts.documents.section import Flag, Int, Name, Section, Text


class PachydermServer(Section):
    """The address of Pachyderm.

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
    """The address of Pachyderm's proxy.

    Attributes:
        scheme: Scheme, such as ``https``.
        host: Name of the host.
        port: Its port.
    """

    scheme: Text | None = None
    host: Text | None = None
    port: Int | Text | None = None


class PachydermDataset(Section):
    """The input data of an experiment.

    Attributes:
        project: Project.
        repo: Repository.
        commit: Commit.
        branch: Branch.
        token: Token for reading the data.
    """

    hidden: ClassVar[frozenset[str]] = frozenset({"token"})

    project: Text | None = None
    repo: Text | None = None
    commit: Text | None = None
    branch: Text | None = None
    token: Text | None = None


class Pachyderm(Section):
    """The input data of an experiment in Pachyderm, which the client can read back.

    Attributes:
        pachd: The server.
        proxy: The proxy.
        dataset: The data.
        project: Project, as in earlier releases.
        repo: Repository, as in earlier releases.
        branch: Branch, as in earlier releases.
        previous_commit: Previous commit, as in earlier releases.
    """

    pachd: PachydermServer | None = None
    proxy: PachydermProxy | None = None
    dataset: PachydermDataset | None = None
    project: Text | None = None
    repo: Text | None = None
    branch: Text | None = None
    previous_commit: Text | None = None


class Webhooks(Section):
    """The webhooks that are called for an experiment.

    Attributes:
        webhook_id: Numbers of webhooks.
        webhook_name: Names of webhooks.
        exclude: Whether no webhook is called.
    """

    webhook_id: tuple[Int, ...] | None = None
    webhook_name: tuple[Name, ...] | None = None
    exclude: Flag = False


class Integrations(Section):
    """The connections of an experiment to other systems.

    Attributes:
        pachyderm: The input data.
        webhooks: The webhooks that are called.
    """

    pachyderm: Pachyderm | None = None
    webhooks: Webhooks | None = None

"""The ``integrations`` section: what other systems have to do with an experiment."""

from __future__ import annotations

from typing import ClassVar

from resolute.contracts.documents.section import Flag, Int, Name, Section


class PachydermServer(Section):
    """Where Pachyderm answers.

    Attributes:
        host: Name of the host.
        port: Its port.
    """

    host: Name
    port: Int


class PachydermProxy(Section):
    """Where Pachyderm's proxy answers.

    Attributes:
        scheme: Such as ``https``.
        host: Name of the host.
        port: Its port.
    """

    scheme: Name
    host: Name
    port: Int


class PachydermDataset(Section):
    """The data that an experiment is made from.

    Attributes:
        project: Project.
        repo: Repository.
        commit: Commit.
        branch: Branch.
        token: Token to read it with.
    """

    secrets: ClassVar[frozenset[str]] = frozenset({"token"})

    project: Name
    repo: Name
    commit: Name
    branch: Name
    token: Name


class Pachyderm(Section):
    """The data in Pachyderm that an experiment is made from; read back by the client.

    Attributes:
        pachd: The server.
        proxy: The proxy.
        dataset: The data.
    """

    pachd: PachydermServer
    proxy: PachydermProxy
    dataset: PachydermDataset


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

"""All services of one cluster, on one session. The module of each service is loaded at its first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from resolute.client.connection.session import Session

if TYPE_CHECKING:
    from resolute.client.remote.accounts.access import Access
    from resolute.client.remote.accounts.roles import Roles
    from resolute.client.remote.accounts.secrets import Secrets
    from resolute.client.remote.accounts.workspaces import Workspaces
    from resolute.client.remote.alerts import Alerts
    from resolute.client.remote.checkpoints import Checkpoints
    from resolute.client.remote.cluster import Cluster
    from resolute.client.remote.config_policies import ConfigPolicies
    from resolute.client.remote.continuations import Continuations
    from resolute.client.remote.experiments import Experiments
    from resolute.client.remote.imports import Imports
    from resolute.client.remote.jobs import Jobs
    from resolute.client.remote.models import Models
    from resolute.client.remote.reports.logs import Logs
    from resolute.client.remote.reports.media import MediaLog
    from resolute.client.remote.reports.metrics import Metrics
    from resolute.client.remote.searches import Searches
    from resolute.client.remote.trials import Trials


class Services:
    """The services of a cluster. Each is created at its first use.

    Args:
        session: The connection. The code that made it also closes it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    @cached_property
    def experiments(self) -> Experiments:
        """Submission, lists and lives of experiments."""
        from resolute.client.remote.experiments import Experiments

        return Experiments(self.session)

    @cached_property
    def trials(self) -> Trials:
        """The trials of experiments."""
        from resolute.client.remote.trials import Trials

        return Trials(self.session)

    @cached_property
    def continuations(self) -> Continuations:
        """Experiments and trials that continue."""
        from resolute.client.remote.continuations import Continuations

        return Continuations(self.session)

    @cached_property
    def logs(self) -> Logs:
        """The lines that trials wrote."""
        from resolute.client.remote.reports.logs import Logs

        return Logs(self.session)

    @cached_property
    def metrics(self) -> Metrics:
        """What trials reported."""
        from resolute.client.remote.reports.metrics import Metrics

        return Metrics(self.session)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """The registry of checkpoints."""
        from resolute.client.remote.checkpoints import Checkpoints

        return Checkpoints(self.session)

    @cached_property
    def media(self) -> MediaLog:
        """Images, tables and so on that trials logged."""
        from resolute.client.remote.reports.media import MediaLog

        return MediaLog(self.session)

    @cached_property
    def models(self) -> Models:
        """Checkpoints under names."""
        from resolute.client.remote.models import Models

        return Models(self.session, self.workspaces)

    @cached_property
    def searches(self) -> Searches:
        """What a search would run."""
        from resolute.client.remote.searches import Searches

        return Searches(self.session)

    @cached_property
    def access(self) -> Access:
        """Users, tokens and the audit trail."""
        from resolute.client.remote.accounts.access import Access

        return Access(self.session)

    @cached_property
    def roles(self) -> Roles:
        """Roles of users in single workspaces."""
        from resolute.client.remote.accounts.roles import Roles

        return Roles(self.session, self.workspaces)

    @cached_property
    def workspaces(self) -> Workspaces:
        """Workspaces and projects."""
        from resolute.client.remote.accounts.workspaces import Workspaces

        return Workspaces(self.session)

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster as a whole."""
        from resolute.client.remote.cluster import Cluster

        return Cluster(self.session)

    @cached_property
    def alerts(self) -> Alerts:
        """Which events notify whom."""
        from resolute.client.remote.alerts import Alerts

        return Alerts(self.session, self.workspaces)

    @cached_property
    def secrets(self) -> Secrets:
        """Secrets for scripts."""
        from resolute.client.remote.accounts.secrets import Secrets

        return Secrets(self.session, self.workspaces)

    @cached_property
    def config_policies(self) -> ConfigPolicies:
        """What admins decide for the configs of experiments."""
        from resolute.client.remote.config_policies import ConfigPolicies

        return ConfigPolicies(self.session, self.workspaces)

    @cached_property
    def imports(self) -> Imports:
        """What is taken over from other clusters."""
        from resolute.client.remote.imports import Imports

        return Imports(self.session)

    @cached_property
    def jobs(self) -> Jobs:
        """The queue."""
        from resolute.client.remote.jobs import Jobs

        return Jobs(self.session)

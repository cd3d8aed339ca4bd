"""All services of one cluster, on one session."""

from __future__ import annotations

from functools import cached_property

from resolute.client.connection.session import Session
from resolute.client.remote.access import Access
from resolute.client.remote.checkpoints import Checkpoints
from resolute.client.remote.cluster import Cluster
from resolute.client.remote.continuations import Continuations
from resolute.client.remote.experiments import Experiments
from resolute.client.remote.jobs import Jobs
from resolute.client.remote.logs import Logs
from resolute.client.remote.metrics import Metrics
from resolute.client.remote.models import Models
from resolute.client.remote.roles import Roles
from resolute.client.remote.searches import Searches
from resolute.client.remote.trials import Trials
from resolute.client.remote.workspaces import Workspaces


class Services:
    """The services, each made when first asked for.

    Args:
        session: The connection; anyone who made it closes it.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    @cached_property
    def experiments(self) -> Experiments:
        """Submission, lists and lives of experiments."""
        return Experiments(self.session)

    @cached_property
    def trials(self) -> Trials:
        """The trials of experiments."""
        return Trials(self.session)

    @cached_property
    def continuations(self) -> Continuations:
        """Experiments and trials that continue."""
        return Continuations(self.session)

    @cached_property
    def logs(self) -> Logs:
        """The lines that trials wrote."""
        return Logs(self.session)

    @cached_property
    def metrics(self) -> Metrics:
        """What trials reported."""
        return Metrics(self.session)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """The registry of checkpoints."""
        return Checkpoints(self.session)

    @cached_property
    def models(self) -> Models:
        """Checkpoints under names."""
        return Models(self.session, self.workspaces)

    @cached_property
    def searches(self) -> Searches:
        """What a search would run."""
        return Searches(self.session)

    @cached_property
    def access(self) -> Access:
        """Users, tokens and the audit trail."""
        return Access(self.session)

    @cached_property
    def roles(self) -> Roles:
        """Roles of users in single workspaces."""
        return Roles(self.session, self.workspaces)

    @cached_property
    def workspaces(self) -> Workspaces:
        """Workspaces and projects."""
        return Workspaces(self.session)

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster as a whole."""
        return Cluster(self.session)

    @cached_property
    def jobs(self) -> Jobs:
        """The queue."""
        return Jobs(self.session)

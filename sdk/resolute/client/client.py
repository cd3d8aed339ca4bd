"""``Client``: one object for one cluster, the entry point for scripts."""

from __future__ import annotations

import itertools
import math
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from resolute.client.charts.chart import Chart, read_chart
from resolute.client.connection.endpoint import CERTIFICATE_NAME_VARIABLES, CERTIFICATE_VARIABLES
from resolute.client.connection.session import Session
from resolute.client.objects.checkpoint import Checkpoint
from resolute.client.objects.experiment import Experiment, Trial
from resolute.client.objects.model import Model
from resolute.client.objects.refused import refusal
from resolute.client.objects.trial_base import of_kind
from resolute.client.objects.user import User
from resolute.client.objects.workspace import Workspace
from resolute.client.preferences import preferred
from resolute.client.remote.experiments import ExperimentFilter, Submission
from resolute.client.remote.models import ModelFilter, ModelUpdate
from resolute.client.schema.accounts import UserRole
from resolute.client.schema.ordering import (
    EXPERIMENT_FIELDS,
    EXPERIMENT_KEYS,
    MODEL_KEYS,
    ExperimentSortBy,
    ModelSortBy,
    OrderBy,
    order_of,
)
from resolute.client.schema.records import (
    ExperimentRecord,
    TrainingMetrics,
    TrialMetrics,
    ValidationMetrics,
)
from resolute.client.schema.states import ExperimentState
from resolute.client.services import Services
from resolute.client.submission.config import config_text, read_config, with_project
from resolute.client.submission.git_state import known_secrets, read_git_state
from resolute.client.submission.packing import configured_limit, pack


class Client:
    """A cluster, called on behalf of one user.

    Args:
        master: The cluster's address; None for the first of ``RESOLUTE_MASTER``, ``DET_MASTER``, the setting
            of `resolute config set server`, and the embedded home.
        user: Name of the user to act as; None for the user that ``DET_USER`` names, else the user of the
            token.
        password: Password of ``user``, which may be empty; None for ``DET_PASS`` if it belongs to this user,
            else to request a token of this user with the stored token.
        cert_path: PEM file of the authorities that sign the cluster's certificate; None for a connection
            without TLS.
        cert_name: Host name that the cluster's certificate must have, if it is not that of the address.
        noverify: Has no effect: certificates are always verified.

    Raises:
        FailedPreconditionError: No cluster is named anywhere.
        InvalidArgumentError: ``master`` is no address, or a password is given without a user.

    Examples:
        >>> from resolute.client import Client
        >>> with Client() as cluster:
        ...     trial = cluster.get_trial(1)
        ...     print(trial.summary_metrics["validation_metrics"]["loss"]["max"])
        0.5
    """

    def __init__(
        self,
        master: str | None = None,
        user: str | None = None,
        password: str | None = None,
        cert_path: str | None = None,
        cert_name: str | None = None,
        noverify: bool = False,
    ) -> None:
        if noverify:
            warnings.warn("noverify has no effect: certificates are always verified", stacklevel=2)
        environment = dict(os.environ)
        if cert_path:
            environment[CERTIFICATE_VARIABLES[0]] = cert_path
        if cert_name:
            environment[CERTIFICATE_NAME_VARIABLES[0]] = cert_name
        master, user = preferred(master or "", user or "", environment)
        session = Session.find(master, user=user, password=password, environment=environment)
        self._services = Services(session)

    @property
    def services(self) -> Services:
        """The services, for what this class has no method for."""
        return self._services

    def __enter__(self) -> Client:  # noqa: PYI034 - typing has Self only since 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.logout()

    def logout(self) -> None:
        """Closes the connection: calls of this object and of what it returned raise ClosedConnectionError."""
        self.services.session.close()

    def get_session_username(self) -> str:
        """Returns the name of the user whose token is used.

        Examples:
            >>> from resolute import client
            >>> client.get_session_username()
            'admin'
        """
        return self.services.cluster.current_user()

    def whoami(self) -> User:
        """Returns the user whose token is used.

        Examples:
            >>> from resolute import client
            >>> client.whoami().username
            'admin'
        """
        return self.get_user_by_name(self.get_session_username())

    def create_experiment(
        self,
        config: str | os.PathLike[str] | Mapping[str, Any],
        model_dir: str | os.PathLike[str] | None = None,
        includes: Sequence[str | os.PathLike[str]] | None = None,
        project_id: int | None = None,
        template: str | None = None,
    ) -> Experiment:
        """Submits an experiment.

        If the code lies in a git work tree, its commit and uncommitted changes are recorded with the
        experiment; RESOLUTE_NO_GIT=1 in the environment switches that off.

        Args:
            config: Path of a YAML file, or the config itself.
            model_dir: Directory of code, or a single file; None for no code.
            includes: Files and directories that come beside it under their own names.
            project_id: Number of the project that it is to belong to; None for the one that the config
                names.
            template: Name of a template to merge under the config.

        Raises:
            ValueError: ``config`` is neither.
            InvalidConfigError: The config is wrong; every fault is listed.
            ModelDefinitionError: The code cannot be packed as it is.

        Examples:
            >>> from resolute import client
            >>> config = {"entrypoint": "python3 train.py", "searcher": {"name": "custom", "metric": "loss"}}
            >>> experiment = client.create_experiment(config)
            >>> experiment.kill()
            >>> experiment.wait()
            <ExperimentState.CANCELED: 'STATE_CANCELED'>
        """
        if not isinstance(config, (str, os.PathLike, Mapping)):
            raise ValueError(  # noqa: TRY004 - the documented error
                f"config parameter must be dictionary or path, not a {type(config).__name__}"
            )
        text = config_text(config) if isinstance(config, Mapping) else read_config(Path(config))
        if project_id is not None:
            project = self.services.workspaces.get_project(project_id)
            text = with_project(text, workspace=project.workspace, project=project.name)
        limit = configured_limit(os.environ)
        paths = [Path(include) for include in includes or ()]
        code = Path(model_dir) if model_dir is not None else None
        secrets = known_secrets(self.services.session.endpoint.token(), os.environ)
        source = read_git_state(code, secrets=secrets)
        with pack(code, paths, limit=limit) as archive:
            created = self.services.experiments.create(
                Submission(config=text, template=template or "", source=source), archive
            )
        for warning in created.warnings:
            warnings.warn(warning, stacklevel=2)
        return Experiment(self.services, created.experiment)

    def get_experiment(self, experiment_id: int | str) -> Experiment:
        """Returns an experiment by its number or UUID.

        Raises:
            NotFoundError: There is none.

        Examples:
            >>> from resolute import client
            >>> client.get_experiment(2).id
            2
        """
        return Experiment(self.services, self.services.experiments.get(experiment_id))

    def list_experiments(
        self,
        sort_by: ExperimentSortBy | None = None,
        order_by: OrderBy | None = None,
        experiment_ids: Sequence[int] | None = None,
        labels: Sequence[str] | None = None,
        users: Sequence[str] | None = None,
        states: Sequence[ExperimentState] | None = None,
        name: str | None = None,
        project_id: int | None = None,
    ) -> list[Experiment]:
        """Lists experiments, archived ones too.

        Args:
            sort_by: What they are sorted by; None for their numbers.
            order_by: Direction; None for ascending.
            experiment_ids: Only these numbers.
            labels: Only experiments with all of these labels.
            users: Only experiments of these users.
            states: Only experiments in one of these states.
            name: Only experiments whose name contains this text, in any case.
            project_id: Only experiments of the project of this number.

        Examples:
            >>> from resolute import client
            >>> [experiment.id for experiment in client.list_experiments(experiment_ids=[2])]
            [2]
        """
        wanted = ExperimentFilter(
            states=tuple(states or ()),
            owners=tuple(users or ()),
            labels=tuple(labels or ()),
            name=name or "",
            include_archived=True,
            project_ids=() if project_id is None else (project_id,),
        )
        sort_by = sort_by or ExperimentSortBy.ID
        order = order_of(EXPERIMENT_FIELDS.get(sort_by, "number"), order_by)
        records = self.services.experiments.list(wanted, order_by=order)
        if experiment_ids is not None:
            chosen = set(experiment_ids)
            # No page is read after the last of them.
            records = itertools.islice((record for record in records if record.id in chosen), len(chosen))
        if sort_by not in EXPERIMENT_FIELDS:
            key = EXPERIMENT_KEYS.get(sort_by) or self._measures(sort_by)
            records = iter(sorted(records, key=key, reverse=order_by is OrderBy.DESCENDING))
        return [Experiment(self.services, record) for record in records]

    def _measures(self, sort_by: ExperimentSortBy) -> Callable[[ExperimentRecord], float]:
        """Returns a function that asks the services for a value that lists of experiments lack."""

        def measure(record: ExperimentRecord) -> float:
            if sort_by is ExperimentSortBy.SEARCHER_METRIC_VAL:
                order = "best_validation" if record.smaller_is_better else "best_validation desc"
                first = next(self.services.trials.list(record.uuid, order_by=order, limit=1), None)
                best = first.best_validation if first is not None else None
                return math.inf if best is None or best.value is None else best.value
            checkpoints = list(self.services.checkpoints.of_experiment(record.uuid))
            if sort_by is ExperimentSortBy.CHECKPOINT_COUNT:
                return len(checkpoints)
            return sum(checkpoint.total_size for checkpoint in checkpoints)

        return measure

    def create_user(
        self, username: str, admin: bool = False, password: str | None = None, remote: bool = False
    ) -> User:
        """Creates a user, an admin or an editor, who signs in with a token or the password.

        Args:
            username: Name.
            admin: Whether the user runs the cluster.
            password: The password; None for a user who signs in with tokens only.
            remote: Refused: users of an OpenID provider are created at their first sign-in.

        Raises:
            AlreadyExistsError: The name is taken.

        Examples:
            >>> from resolute import client
            >>> client.create_user("grace", password="Correct-Horse-1").username
            'grace'
        """
        if remote:
            remedy = "users of an OpenID provider are created when they first sign in by it"
            raise refusal("create_user(remote=True)", remedy)
        role = UserRole.ADMIN if admin else UserRole.EDITOR
        user = User(self.services, self.services.access.create_user(username, role))
        if password is not None:
            user.change_password(password)
            return self.get_user_by_name(username)
        return user

    def get_user_by_name(self, user_name: str) -> User:
        """Returns a user.

        Raises:
            NotFoundError: There is none of this name.

        Examples:
            >>> from resolute import client
            >>> client.get_user_by_name("admin").admin
            True
        """
        return User(self.services, self.services.access.get_user(user_name))

    def get_user_by_id(self, user_id: int) -> User:
        """Returns a user.

        Raises:
            NotFoundError: There is none of this number.

        Examples:
            >>> from resolute import client
            >>> me = client.whoami()
            >>> client.get_user_by_id(me.user_id).username
            'admin'
        """
        return User(self.services, self.services.access.get_user(user_id))

    def list_users(self, active: bool | None = None) -> list[User]:
        """Lists users by name: all, those who are active, or those who are not.

        Examples:
            >>> from resolute import client
            >>> "admin" in [user.username for user in client.list_users(active=True)]
            True
        """
        records = self.services.access.list_users(active=active)
        return [User(self.services, record) for record in records]

    def create_workspace(self, name: str) -> Workspace:
        """Creates a workspace.

        Raises:
            AlreadyExistsError: The name is taken.

        Examples:
            >>> from resolute import client
            >>> client.create_workspace("audio").name
            'audio'
        """
        return Workspace(self.services, self.services.workspaces.create(name))

    def get_workspace(self, name: str) -> Workspace:
        """Returns a workspace.

        Raises:
            NotFoundError: There is none of this name.

        Examples:
            >>> from resolute import client
            >>> client.get_workspace("Uncategorized").name
            'Uncategorized'
        """
        return Workspace(self.services, self.services.workspaces.get(name))

    def list_workspaces(self) -> list[Workspace]:
        """Lists workspaces by name.

        Examples:
            >>> from resolute import client
            >>> "Uncategorized" in [workspace.name for workspace in client.list_workspaces()]
            True
        """
        return [Workspace(self.services, record) for record in self.services.workspaces.list()]

    def delete_workspace(self, name: str) -> None:
        """Removes a workspace.

        Raises:
            FailedPreconditionError: It holds experiments.

        Examples:
            >>> from resolute import client
            >>> workspace = client.create_workspace("draft")
            >>> client.delete_workspace("draft")
        """
        self.services.workspaces.delete(name)

    def get_trial(self, trial_id: int | str) -> Trial:
        """Returns a trial by its number or UUID.

        Raises:
            NotFoundError: There is none.

        Examples:
            >>> from resolute import client
            >>> client.get_trial(1).experiment_id
            2
        """
        return Trial(self.services, self.services.trials.get(trial_id))

    def chart(
        self,
        metric: str = "",
        *,
        trials: Sequence[int] = (),
        experiments: Sequence[int] = (),
        top: int = 10,
        log: bool = False,
    ) -> Chart:
        """Draws a metric of trials, or of the best trials of experiments, as a notebook shows it.

        Args:
            metric: The metric with its group, such as ``training/loss``; a name without a group is one of
                ``validation``. Empty for the metric of the search.
            trials: Numbers of trials.
            experiments: Numbers of experiments.
            top: How many trials of each experiment, the best first.
            log: Whether the axis of values is logarithmic.

        Raises:
            InvalidArgumentError: Nothing is named, or more trials than a chart has room for.
            NotFoundError: There is no such trial or experiment.

        Examples:
            >>> from resolute import client
            >>> client.chart("training/loss", trials=[1])
            <Chart of training/loss: trial 1>
        """
        return read_chart(self.services, metric, trials=trials, experiments=experiments, top=top, log=log)

    def get_checkpoint(self, uuid: str) -> Checkpoint:
        """Returns a committed checkpoint.

        Raises:
            NotFoundError: There is none.

        Examples:
            >>> from resolute import client
            >>> best = client.get_trial(1).top_checkpoint()
            >>> client.get_checkpoint(best.uuid).metadata
            {'steps_completed': 1}
        """
        return Checkpoint(self.services, self.services.checkpoints.get(uuid))

    def create_model(
        self,
        name: str,
        description: str | None = "",
        metadata: Mapping[str, Any] | None = None,
        labels: Sequence[str] | None = None,
        workspace_name: str | None = None,
    ) -> Model:
        """Creates a model: a name under which checkpoints are kept as versions.

        Args:
            name: Its name, which no other model of the cluster has.
            description: What it is for, as text.
            metadata: Values by keys of the caller's own, which JSON can hold.
            labels: Words by which models are listed.
            workspace_name: The workspace that it belongs to; None for the cluster's default.

        Raises:
            AlreadyExistsError: The name is taken.
            NotFoundError: There is no such workspace.

        Examples:
            >>> from resolute import client
            >>> client.create_model("digits", labels=["good"]).labels
            ['good']
        """
        changes = ModelUpdate(
            description=description or "", metadata_patch=metadata or {}, labels=labels or ()
        )
        return Model(
            self.services, self.services.models.create(name, changes, workspace=workspace_name or "")
        )

    def get_model(self, identifier: int | str) -> Model:
        """Returns a model by its name or its number.

        Raises:
            NotFoundError: There is none.

        Examples:
            >>> from resolute import client
            >>> model = client.create_model("fish")
            >>> client.get_model("fish").model_id == model.model_id
            True
        """
        return Model(self.services, self.services.models.get(identifier))

    def get_model_by_id(self, model_id: int) -> Model:
        """Returns a model by its number.

        Raises:
            NotFoundError: There is none.

        Examples:
            >>> from resolute import client
            >>> model = client.create_model("mice")
            >>> client.get_model_by_id(model.model_id).name
            'mice'
        """
        return self.get_model(model_id)

    def list_models(
        self,
        sort_by: ModelSortBy = ModelSortBy.NAME,
        order_by: OrderBy = OrderBy.ASCENDING,
        name: str | None = None,
        description: str | None = None,
        model_id: int | None = None,
        workspace_names: Sequence[str] | None = None,
        workspace_ids: Sequence[int] | None = None,
    ) -> list[Model]:
        """Lists models, archived ones too.

        Args:
            sort_by: What they are sorted by.
            order_by: Direction.
            name: Only models whose name contains this text, in any case.
            description: Only models whose description contains this text, in any case.
            model_id: Only the model of this number.
            workspace_names: Only models of one of these workspaces, by name.
            workspace_ids: Only models of one of these workspaces, by number.

        Examples:
            >>> from resolute import client
            >>> model = client.create_model("ants", workspace_name="Uncategorized")
            >>> [one.name for one in client.list_models(name="ants")]
            ['ants']
        """
        wanted = ModelFilter(
            name=name or "",
            description=description or "",
            workspaces=tuple(workspace_names or ()),
            workspace_ids=tuple(workspace_ids or ()),
        )
        records = [record for record in self.services.models.list(wanted) if model_id in {None, record.id}]
        records.sort(key=MODEL_KEYS[sort_by], reverse=order_by is OrderBy.DESCENDING)
        return [Model(self.services, record) for record in records]

    def get_model_labels(self) -> list[str]:
        """Lists the labels of all models, the most used first.

        Examples:
            >>> from resolute import client
            >>> model = client.create_model("owls", labels=["tested"])
            >>> "tested" in client.get_model_labels()
            True
        """
        counts = Counter(
            label for record in self.services.models.list(ModelFilter()) for label in record.labels
        )
        return [label for label, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]

    def iter_trials_metrics(
        self, trial_ids: Sequence[int], group: str | None = None
    ) -> Iterator[TrialMetrics]:
        """Yields what trials reported, trial by trial, in ``group`` or in all groups.

        Examples:
            >>> from resolute import client
            >>> [report.metrics for report in client.iter_trials_metrics([1], "validation")]
            [{'loss': 0.5}]
        """
        for trial_id in trial_ids:
            yield from self.get_trial(trial_id).iter_metrics(group)

    def stream_trials_training_metrics(self, trial_ids: Sequence[int]) -> Iterator[TrainingMetrics]:
        """Yields what trials reported in the group ``training``.

        Examples:
            >>> from resolute import client
            >>> for report in client.stream_trials_training_metrics([1]):
            ...     print(report.steps_completed, report.metrics)
        """
        return of_kind(TrainingMetrics, self.iter_trials_metrics(trial_ids, "training"))

    def stream_trials_validation_metrics(self, trial_ids: Sequence[int]) -> Iterator[ValidationMetrics]:
        """Yields what trials reported in the group ``validation``.

        Examples:
            >>> from resolute import client
            >>> for report in client.stream_trials_validation_metrics([1]):
            ...     print(report.steps_completed, report.metrics)
            1 {'loss': 0.5}
        """
        return of_kind(ValidationMetrics, self.iter_trials_metrics(trial_ids, "validation"))

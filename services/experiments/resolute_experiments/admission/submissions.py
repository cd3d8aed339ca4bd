"""Submits an experiment: creates it, or raises one error with the reason."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy.engine import Connection

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints_pb2
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher_pb2
from resolute.contracts.clock import Clock
from resolute.contracts.documents.refusals import refused_config
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
    Violation,
)
from resolute_config.layer import Layer
from resolute_experiments.accounts import secrets
from resolute_experiments.accounts.storage_quotas import StorageQuota
from resolute_experiments.accounts.store import locations
from resolute_experiments.accounts.store.workspaces import UNCATEGORIZED
from resolute_experiments.accounts.workspace_quotas import admit, require_editor
from resolute_experiments.admission import model_definition
from resolute_experiments.admission.acceptance import Accepted, Admission
from resolute_experiments.admission.config_policies import Enforced
from resolute_experiments.admission.config_reader import ConfigReader
from resolute_experiments.admission.storage_roots import StorageRoots
from resolute_experiments.clients import Clients
from resolute_experiments.specs.search import search_spec
from resolute_experiments.specs.storage import without_secrets
from resolute_experiments.states import ExperimentState
from resolute_experiments.store import audit, config_policies, experiments, templates
from resolute_experiments.store.experiments import Experiment, ExperimentKind
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_serving.auth.grants import current_grants
from resolute_serving.auth.policy.resources import Kind, Resource
from resolute_serving.context import actor
from resolute_serving.database.engine import Database

if TYPE_CHECKING:
    from resolute_config.experiment import ExperimentConfig


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A submitted config with its code."""

    request: Any
    """The message that asks for it, whose ``request_id`` makes a repeated call give the first answer."""
    config_yaml: str
    """The config as its author wrote it."""
    template: str = ""
    """Name of a template to merge under it; empty for none."""
    base: Layer | None = None
    """A config of which this one says only what is different; None for a config that says all."""
    paused: bool = False
    """Whether it begins paused."""
    test_mode: bool = False
    """Whether it only trains one batch."""
    model_definition: bytes = b""
    """A gzipped tar archive."""
    kind: ExperimentKind = ExperimentKind.SEARCH
    """What it is for."""
    source: bytes = b""
    """Where it came from: a serialized ``CodeSource``; empty when that is not known."""


class Submissions:
    """Accepts submissions.

    Args:
        database: This service's database.
        clock: Tells the time.
        admission: The rules by which this cluster accepts configs now.
        storage_quota: Checks whether a workspace may have more checkpoints.
        storage_roots: Checks where checkpoints may be stored.
        reader: Reads configs.
        clients: The other services.
    """

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock,
        admission: Callable[[], Admission],
        storage_quota: StorageQuota,
        storage_roots: StorageRoots,
        reader: ConfigReader,
        clients: Clients,
    ) -> None:
        self._clients = clients
        self._database = database
        self._clock = clock
        self._admission = admission
        self._storage_quota = storage_quota
        self._storage_roots = storage_roots
        self._reader = reader

    async def check(
        self, config_yaml: str, *, template: str = "", base: Layer | None = None, test_mode: bool = False
    ) -> Accepted:
        """Makes a whole config of what its author wrote.

        Args:
            config_yaml: What its author wrote.
            template: Name of a template to merge under it; empty for none.
            base: A config to merge under it; None for none.
            test_mode: Whether it only trains one batch.

        Raises:
            InvalidConfigError: Something in it is wrong; the error lists every fault.
            NotFoundError: The template does not exist.
        """
        layers = [] if base is None else [base]
        if template:
            layer = await self._database.read(lambda c: templates.get(c, template))
            layers.append(Layer(f"template {template!r}", layer.config))
        admission = self._admission()
        layers.append(Layer("cluster defaults", admission.cluster_defaults))
        accepted = await self._reader.whole(
            config_yaml,
            layers=layers,
            admission=admission,
            enforced=await self._enforced(config_yaml, layers),
            test_mode=test_mode,
        )
        await self._check_source_trial(accepted.config)
        await self._storage_roots.require(accepted.config.to_dict())
        return accepted

    async def _enforced(self, config_yaml: str, layers: list[Layer]) -> Enforced:
        """The policies that count for a config: which ones those are depends on its workspace."""
        workspace = UNCATEGORIZED
        if await self._database.read(config_policies.any_of_workspaces):
            workspace = await self._reader.workspace(config_yaml, layers=layers) or UNCATEGORIZED
        return Enforced(await self._database.read(lambda c: config_policies.effective(c, workspace)))

    async def _check_source_trial(self, config: ExperimentConfig) -> None:
        number = config.searcher.source_trial_id
        if number is not None and not await self._sees(Resource(Kind.TRIAL_NUMBER, str(number))):
            raise refused_config(
                Violation("searcher.source_trial_id", f"found {number}; there is no such trial")
            )

    async def _check_source_checkpoint(self, config: ExperimentConfig) -> None:
        """Refuses a checkpoint that the caller may not see: the experiment's runs could read it."""
        checkpoint_id = config.searcher.source_checkpoint_uuid
        if checkpoint_id is None:
            return
        request = checkpoints_pb2.GetCheckpointRequest(checkpoint_id=checkpoint_id)
        try:
            checkpoint = (await self._clients.checkpoints.GetCheckpoint(request)).checkpoint
            owner = (
                Resource(Kind.TRIAL, checkpoint.trial_id)
                if checkpoint.trial_id
                else Resource(Kind.EXPERIMENT, checkpoint.experiment_id)
            )
            seen = await self._sees(owner)
        except (NotFoundError, InvalidArgumentError):
            seen = False
        if not seen:
            raise refused_config(
                Violation(
                    "searcher.source_checkpoint_uuid",
                    f"found {checkpoint_id!r}; there is no such checkpoint",
                )
            )

    async def _check_method(self, config: ExperimentConfig) -> None:
        """Refuses a search whose method, of another distribution, is not there or fails as it is made."""
        from resolute_config.sections.searcher import PluginSearcher  # loaded with the config

        if not isinstance(config.searcher, PluginSearcher):
            return
        spec = search_spec(config.to_dict())
        try:
            await self._clients.searcher.PreviewSearch(searcher_pb2.PreviewSearchRequest(spec=spec))
        except (InvalidArgumentError, NotFoundError) as error:
            raise refused_config(Violation("searcher.method", str(error))) from error
        except (FailedPreconditionError, UnavailableError):
            # It can be made, and knows its trials alone; or the controller asks again later.
            return

    async def _sees(self, resource: Resource) -> bool:
        located = await self._database.read(lambda c: locations.workspaces_of(c, [resource]))
        return resource in located and current_grants.get().sees(located[resource])

    async def submit(self, submission: Submission) -> tuple[Experiment, tuple[str, ...]]:
        """Creates an experiment, once for each request.

        Returns:
            The experiment, and what in its config has no effect here.

        Raises:
            InvalidConfigError: The config is wrong.
            InvalidArgumentError: The model definition is wrong.
            PermissionDeniedError: The caller may not run experiments in its workspace.
            QuotaError: The model definition is too large, or the workspace would use more than it may.
            AlreadyExistsError: The request was used for another experiment.
        """
        accepted = await self.check(
            submission.config_yaml,
            template=submission.template,
            base=submission.base,
            test_mode=submission.test_mode,
        )
        _check_kind(submission.kind, accepted.config)
        # Not in check(): a promotion checks the config before it copies the checkpoint to this cluster.
        await self._check_source_checkpoint(accepted.config)
        await self._check_method(accepted.config)
        sha256 = await asyncio.to_thread(_checked_model_definition, submission.model_definition, accepted)
        values = self._row(submission, accepted, definition_sha256=sha256)
        await self._storage_quota.admit(values["workspace"])
        now = self._clock.time()

        def create(connection: Connection) -> str:
            admit(
                connection,
                workspace=values["workspace"],
                project=values["project"],
                slots=accepted.config.to_dict()["resources"]["slots_per_trial"],
            )
            definition = submission.model_definition
            created = experiments.insert(connection, values, definition, source=submission.source)
            secrets.require_named(connection, created, created.config)
            audit.record(connection, "create", created.label, now=now, name=created.name)
            return created.id

        def work(connection: Connection) -> Experiment:
            digest = values["definition_sha256"].encode()
            created = IDEMPOTENCY_KEYS.once(
                connection, submission.request, partial(create, connection), now=now, content=digest
            )
            require_editor(connection, created)
            return experiments.get(connection, experiment_id=created)

        return await self._database.write(work), accepted.warnings

    def _row(self, submission: Submission, accepted: Accepted, *, definition_sha256: str) -> dict[str, Any]:
        config = accepted.config
        state = ExperimentState.PAUSED if submission.paused else ExperimentState.ACTIVE
        return {
            "id": str(uuid.uuid4()),
            "request_id": str(uuid.uuid4()),
            "name": config.name,
            "description": config.description or "",
            "labels": list(config.labels),
            "state": state.value,
            "archived": False,
            "owner": actor(),
            "workspace": config.workspace or UNCATEGORIZED,
            "project": config.project or UNCATEGORIZED,
            "config": without_secrets(config.to_dict()),
            "progress": 0.0,
            "failure": "",
            "revision": 1,
            "created_at": self._clock.time(),
            "definition_sha256": definition_sha256,
            "definition_size": len(submission.model_definition),
            "search_created": False,
            "action_cursor": 0,
            "resource_pool": accepted.resource_pool,
            "kind": submission.kind.value,
        }


def _checked_model_definition(archive: bytes, accepted: Accepted) -> str:
    """Refuses files that cannot be run, and returns their digest; may take seconds."""
    from resolute_experiments.admission.missing_scripts import missing_script  # loaded with the config

    files = model_definition.check(archive)
    if violation := missing_script(accepted.config, files, runs_here=accepted.runs_here):
        raise refused_config(violation)
    return hashlib.sha256(archive).hexdigest()


def _check_kind(kind: ExperimentKind, config: ExperimentConfig) -> None:
    method = config.to_dict()["searcher"]["name"]
    if kind is not ExperimentKind.SEARCH and method != "single":
        reason = f"found {method!r}; a {kind.value.lower()} is one trial, whose method is 'single'"
        raise refused_config(Violation("searcher.name", reason))

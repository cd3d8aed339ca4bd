"""Puts the experiments service together."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import structlog
from sqlalchemy.engine import make_url

from resolute.api.experiments.v1 import (
    access_service_pb2_grpc,
    allocations_service_pb2_grpc,
    cluster_service_pb2_grpc,
    config_policies_service_pb2_grpc,
    continuation_service_pb2_grpc,
    experiments_service_pb2_grpc,
    jobs_service_pb2_grpc,
    retention_service_pb2_grpc,
    roles_service_pb2_grpc,
    trials_service_pb2_grpc,
    workspaces_service_pb2_grpc,
)
from resolute.contracts.calls.tls import ClientTls
from resolute_experiments.access.id_tokens import IdTokenVerifier
from resolute_experiments.access.issuing import OPERATOR, TokenIssuer
from resolute_experiments.access.openid_settings import OpenIdSettings
from resolute_experiments.access.refusal_log import RefusalLog
from resolute_experiments.admission.id_assignment import assign_ids
from resolute_experiments.admission.preparation import Admission, ConfigReader
from resolute_experiments.admission.storage_quotas import StorageQuota
from resolute_experiments.admission.storage_roots import StorageRoots
from resolute_experiments.admission.submissions import Submissions
from resolute_experiments.clients import Clients
from resolute_experiments.context import ServiceContext
from resolute_experiments.directory import StoredDirectory
from resolute_experiments.gauges import ServiceGauges
from resolute_experiments.lifecycle.controller import ExperimentController
from resolute_experiments.lifecycle.validation_copy import ValidationCopy
from resolute_experiments.notifier import SCHEDULER_WAKEUP, SIGNAL_CHANGES, Notifier
from resolute_experiments.resources.engine import Engine
from resolute_experiments.resources.engine_environment import EngineEnvironment
from resolute_experiments.resources.fleet import Fleet
from resolute_experiments.resources.leases import Leases
from resolute_experiments.resources.registry import ONLY_LOCAL, open_engine
from resolute_experiments.resources.run_spans import RunSpans
from resolute_experiments.resources.settings import EngineSettings, ResourceSettings, resources_of
from resolute_experiments.retention.deferred import DeferredRetention
from resolute_experiments.scheduling.draining import drain
from resolute_experiments.scheduling.scheduler import Scheduler
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.accounts.access import AccessServicer
from resolute_experiments.servicers.accounts.roles import RolesServicer
from resolute_experiments.servicers.allocations import AllocationsServicer
from resolute_experiments.servicers.cluster import ClusterServicer
from resolute_experiments.servicers.config_policies import ConfigPoliciesServicer
from resolute_experiments.servicers.continuations import ContinuationServicer
from resolute_experiments.servicers.experiments import ExperimentsServicer
from resolute_experiments.servicers.jobs import JobsServicer
from resolute_experiments.servicers.retention import RetentionServicer
from resolute_experiments.servicers.trials import TrialsServicer
from resolute_experiments.servicers.workspaces import WorkspacesServicer
from resolute_experiments.specs.storage import partial_without_secrets
from resolute_experiments.store import experiments
from resolute_experiments.store.directory import projects, tokens, users
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_experiments.unmanaged.heartbeats import HeartbeatMonitor
from resolute_serving.auth.tokens import TokenSigner, load_or_create_key
from resolute_serving.context import Role, TrialRun, User
from resolute_serving.observability.gauges import Gauge
from resolute_serving.server.service import Environment

_FIRST_USERS = (OPERATOR, User("determined", Role.EDITOR))
_log = structlog.get_logger("experiments")


@dataclass(frozen=True, kw_only=True)
class ExperimentsSettings:
    """What this service is told beside its environment."""

    address: str
    """``host:port`` where supervisors and trials reach all services."""
    tls: ClientTls | None = None
    """Whom they trust there; None for a plain port."""
    runs_directory: Path
    """Where the local resource manager keeps a directory for each run."""
    slots: int | None = None
    """Slots of this machine; None to count its GPUs, or else its cores."""
    nodes: int = 1
    """As how many machines this one appears, to try trials across several."""
    cluster_defaults: dict[str, Any] = field(default_factory=dict)
    """Lowest layer of every config."""
    lease_ttl: float = 30.0
    """Seconds that a lease lasts without renewal."""
    outage_timeout: float = 3600.0
    """Seconds that trials continue while no service answers."""
    log_wait: float = 10.0
    """Seconds that the end of a run waits for the logs service to take the run's last lines."""
    preemption_timeout: float = 3600.0
    """Seconds that trials get to checkpoint after a signal."""
    openid: OpenIdSettings | None = None
    """The OpenID provider that signs people in; None for passwords alone."""
    resources: ResourceSettings | None = None
    """The engines and their pools; None for this machine alone."""

    @property
    def engines(self) -> Sequence[EngineSettings]:
        """The engines."""
        return (self.resources or ONLY_LOCAL).engines

    def shown(self) -> dict[str, Any]:
        """What admins may see of the settings: all of them, without the secrets of default configs."""
        openid = self.openid
        return {
            "address": self.address,
            "runs_directory": str(self.runs_directory),
            "slots": self.slots,
            "nodes": self.nodes,
            "lease_ttl": self.lease_ttl,
            "outage_timeout": self.outage_timeout,
            "log_wait": self.log_wait,
            "preemption_timeout": self.preemption_timeout,
            "resource_pools": [pool.name for one in self.engines for pool in one.pools],
            "openid": None if openid is None else {"issuer": openid.issuer, "client_id": openid.client_id},
            "cluster_defaults": partial_without_secrets(self.cluster_defaults),
        }


class ExperimentsService:
    """Owns experiments, trials, runs, allocations, users; the only service that leads others.

    Args:
        environment: What every service is given.
        settings: What this one is told beside it.
    """

    name = "experiments"
    grpc_names: Sequence[str] = tuple(
        f"resolute.api.experiments.v1.{noun}Service"
        for noun in (
            "Experiments",
            "Trials",
            "Continuation",
            "Retention",
            "Allocations",
            "Access",
            "Roles",
            "Workspaces",
            "Cluster",
            "Jobs",
            "ConfigPolicies",
        )
    )

    def __init__(self, environment: Environment, settings: ExperimentsSettings) -> None:
        self._directories = _directories(environment, settings)
        key = load_or_create_key(environment.data_directory / "signing-key.pem")
        self._environment = environment
        self._clock = environment.clock
        self._ended = environment.revoked
        self._config_reader = ConfigReader(settings.cluster_defaults)
        openid = settings.openid
        self._id_tokens = IdTokenVerifier(openid, environment.clock) if openid is not None else None
        self._settings = settings
        self._signer = TokenSigner(key, cluster_id=environment.cluster_id, clock=environment.clock)
        self._core = ServiceContext(
            database=environment.open_database("experiments"),
            notifier=Notifier(),
            clock=environment.clock,
            cluster_id=environment.cluster_id,
            preemption_timeout=settings.preemption_timeout,
        )
        self.directory = StoredDirectory(self._core.database)
        self._clients = Clients(environment.peers)
        self._leases = Leases(environment.clock, ttl=settings.lease_ttl)
        self._run_spans = RunSpans(os.environ)
        self._fleet = self._open_fleet(environment, settings)
        self._wait_reasons = WaitReasons(self._fleet.wait_reason)
        self._scheduler = Scheduler(
            self._core.database,
            fleet=self._fleet,
            notifier=self._core.notifier,
            clock=environment.clock,
            wait_reasons=self._wait_reasons,
            preemption_timeout=settings.preemption_timeout,
            spans=self._run_spans,
        )
        self._gauges = ServiceGauges(
            self._core.database, fleet=self._fleet, scheduler=self._scheduler, clock=environment.clock
        )
        self._heartbeats = HeartbeatMonitor(self._core, adopt=self._adopt)
        self._deferred_retention = DeferredRetention(
            self._core, clients=self._clients, unreported=self._fleet.unreported
        )
        self._idempotency_sweeper = IDEMPOTENCY_KEYS.sweeper(self._core.database, clock=environment.clock)
        self._validations = ValidationCopy(
            self._core.database, clients=self._clients, notifier=self._core.notifier
        )
        self._refusal_log = RefusalLog(self._core.database, environment.refusals, clock=environment.clock)
        self._controllers: dict[str, asyncio.Task[None]] = {}
        # Experiments that were to be led while somebody led them, and perhaps was about to stop.
        self._asked_again: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def _open_fleet(self, environment: Environment, settings: ExperimentsSettings) -> Fleet:
        told = EngineEnvironment(
            cluster_id=environment.cluster_id,
            address=settings.address,
            tls=settings.tls,
            outage_timeout=settings.outage_timeout,
            log_wait=settings.log_wait,
            runs_directory=settings.runs_directory,
            slots=settings.slots,
            nodes=settings.nodes,
        )
        engines = [
            Engine(
                open_engine(one, told),
                self._core,
                name=one.name,
                leases=self._leases,
                issue_token=self._issue_token,
                address=settings.address,
                spans=self._run_spans,
            )
            for one in settings.engines
        ]
        resources = settings.resources or ONLY_LOCAL
        return Fleet(
            engines, default_pool=resources.default_pool, pools_are_named=settings.resources is not None
        )

    @property
    def slot_count(self) -> int:
        """Slots of the cluster."""
        return self._fleet.slot_count

    async def gauges(self) -> Sequence[Gauge]:
        """Returns the numbers of experiments, trials, slots and the queue."""
        return await self._gauges.gauges()

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handlers to a server that has not started."""
        storage_quota = StorageQuota(self._core.database, self._clients)
        storage_roots = StorageRoots(self._clients)
        submissions = self._submissions(storage_quota, storage_roots)
        experiments_service_pb2_grpc.add_ExperimentsServiceServicer_to_server(
            ExperimentsServicer(
                self._core, wait_reasons=self._wait_reasons, submissions=submissions, adopt=self._adopt
            ),
            server,
        )
        retention_service_pb2_grpc.add_RetentionServiceServicer_to_server(
            RetentionServicer(self._core, clients=self._clients, unreported=self._fleet.unreported), server
        )
        continuation_service_pb2_grpc.add_ContinuationServiceServicer_to_server(
            ContinuationServicer(
                self._core,
                submissions=submissions,
                storage_quota=storage_quota,
                storage_roots=storage_roots,
                adopt=self._adopt,
            ),
            server,
        )
        trials_service_pb2_grpc.add_TrialsServiceServicer_to_server(
            TrialsServicer(
                self._core,
                wait_reasons=self._wait_reasons,
                signer=self._signer,
                reader=self._config_reader,
                heartbeats=self._heartbeats,
                storage_quota=storage_quota,
                storage_roots=storage_roots,
                token_ttl=self._token_ttl,
            ),
            server,
        )
        allocations_service_pb2_grpc.add_AllocationsServiceServicer_to_server(
            AllocationsServicer(
                self._core, signer=self._signer, leases=self._leases, token_ttl=self._token_ttl
            ),
            server,
        )
        access_service_pb2_grpc.add_AccessServiceServicer_to_server(
            AccessServicer(
                self._core,
                self._signer,
                revoked=self._ended,
                refusals=self._environment.refusals,
                id_tokens=self._id_tokens,
            ),
            server,
        )
        roles_service_pb2_grpc.add_RolesServiceServicer_to_server(RolesServicer(self._core), server)
        workspaces_service_pb2_grpc.add_WorkspacesServiceServicer_to_server(
            WorkspacesServicer(self._core, storage_quota), server
        )
        cluster_service_pb2_grpc.add_ClusterServiceServicer_to_server(
            ClusterServicer(
                self._core,
                self._fleet,
                directories=self._directories,
                reader=self._config_reader,
                settings=self._settings.shown(),
            ),
            server,
        )
        config_policies_service_pb2_grpc.add_ConfigPoliciesServiceServicer_to_server(
            ConfigPoliciesServicer(self._core, reader=self._config_reader), server
        )
        jobs_service_pb2_grpc.add_JobsServiceServicer_to_server(
            JobsServicer(self._core, wait_reasons=self._wait_reasons), server
        )

    def _submissions(self, storage_quota: StorageQuota, storage_roots: StorageRoots) -> Submissions:
        return Submissions(
            self._core.database,
            clock=self._clock,
            admission=self._admission,
            storage_quota=storage_quota,
            storage_roots=storage_roots,
            reader=self._config_reader,
        )

    def _admission(self) -> Admission:
        return Admission(
            cluster_defaults=self._settings.cluster_defaults,
            pools=self._fleet.offered(),
        )

    async def start(self) -> None:
        """Takes up everything that was under way when this service last ended."""
        now = self._clock.time()
        for user in _FIRST_USERS:
            await self._core.database.write(partial(users.ensure, user=user, now=now))
        await self._core.database.write(partial(projects.ensure_uncategorized, owner="admin", now=now))
        await self._core.database.read(self._wait_reasons.load)
        self._ended.follow(self._revoked_tokens, clock=self._clock)
        self._idempotency_sweeper.start()
        await self._fleet.recover()
        for experiment in await self._core.database.read(experiments.live):
            self._adopt(experiment.id)
        self._tasks = [
            asyncio.create_task(self._fleet.run(), name="fleet"),
            asyncio.create_task(self._scheduler.run(), name="scheduler"),
            asyncio.create_task(self._heartbeats.run(), name="heartbeats"),
            asyncio.create_task(self._deferred_retention.run(), name="deferred-retention"),
            asyncio.create_task(assign_ids(self._core.database, self._clients), name="assign-ids"),
            asyncio.create_task(self._validations.run(), name="validations"),
            asyncio.create_task(self._refusal_log.run(), name="refusal-log"),
        ]

    async def drain(self, *, timeout: float) -> None:
        """Asks running trials to checkpoint and exit, starts none, and ends those that do not exit in time.

        Args:
            timeout: Seconds that they get.
        """
        self._scheduler.stop()
        await drain(self._core, self._fleet, timeout=timeout)

    async def stop(self) -> None:
        """Ends watches and background work. Trials continue."""
        self._core.notifier.close()
        tasks = [*self._tasks, *self._controllers.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._idempotency_sweeper.stop()
        await self._refusal_log.write()
        self._ended.unfollow()
        await self._config_reader.close()
        if self._id_tokens is not None:
            self._id_tokens.close()
        await asyncio.to_thread(self._run_spans.close)
        self._core.database.close()

    async def operator_token(self, *, description: str) -> str:
        """Returns the operator's token; empty if the operator's user is deactivated.

        Args:
            description: Names it in lists.
        """
        issued = await TokenIssuer(self._core, self._signer).operator(description=description)
        return issued.text if issued is not None else ""

    async def operator_sign_in_code(self) -> str:
        """Returns a code that signs the operator in once."""
        return (await TokenIssuer(self._core, self._signer).create_code(OPERATOR.name)).text

    async def _revoked_tokens(self) -> Sequence[str]:
        now = self._clock.time()
        return await self._core.database.read(partial(tokens.revoked, now=now))

    @property
    def _token_ttl(self) -> float:
        # A token must outlive an outage that its trial sits out.
        return self._settings.outage_timeout * 2

    def _issue_token(self, run: TrialRun) -> str:
        return self._signer.trial(run, ttl=self._token_ttl)

    def _adopt(self, experiment_id: str) -> None:
        """Begins to lead an experiment, unless that is done already."""
        current = self._controllers.get(experiment_id)
        if current is not None and not current.done():
            self._asked_again.add(experiment_id)
            self._core.notifier.notify(experiment_id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)
            return
        controller = ExperimentController(
            experiment_id,
            self._core,
            clients=self._clients,
            lease_ttl=self._settings.lease_ttl,
            machines=self._fleet,
            validations=self._validations,
        )
        task = asyncio.create_task(controller.run(), name=f"controller-{experiment_id}")
        task.add_done_callback(self._controller_ended)
        self._controllers[experiment_id] = task

    def _controller_ended(self, task: asyncio.Task[None]) -> None:
        for experiment_id, known in list(self._controllers.items()):
            if known is task:
                del self._controllers[experiment_id]
                if experiment_id in self._asked_again and not task.cancelled():
                    self._asked_again.remove(experiment_id)
                    self._adopt(experiment_id)
        if not task.cancelled() and task.exception() is not None:
            _log.error("an experiment's controller failed", exc_info=task.exception())


def _directories(environment: Environment, settings: ExperimentsSettings) -> list[Path]:
    """Where this service, its runs and experiments that name no other storage write."""
    found = [environment.data_directory, settings.runs_directory]
    url = make_url(environment.database_url)
    if url.get_backend_name() == "sqlite" and url.database:
        found.append(Path(url.database).parent)
    storage = settings.cluster_defaults.get("checkpoint_storage", {})
    if storage.get("host_path"):
        found.append(Path(storage["host_path"]))
    return found


def create(environment: Environment) -> ExperimentsService:
    """Makes the service from its environment and these variables.

    RESOLUTE_ADVERTISED_ADDRESS is where supervisors reach the services (127.0.0.1:8080),
    RESOLUTE_ADVERTISED_CA the PEM file of who signs the certificate there (none: a plain port),
    RESOLUTE_RUNS_DIR where run directories lie (``runs`` in the data directory), RESOLUTE_SLOTS how many
    slots there are, RESOLUTE_LOCAL_NODES as how many machines they appear (1), RESOLUTE_LOG_WAIT how many
    seconds the end of a run waits for the logs service to take the run's last lines (10),
    RESOLUTE_RESOURCE_POOLS the file with engines and resource pools (this machine alone).
    ``OpenIdSettings`` names those of sign-in.
    """
    slots = os.environ.get("RESOLUTE_SLOTS", "")
    authority = os.environ.get("RESOLUTE_ADVERTISED_CA", "")
    settings = ExperimentsSettings(
        address=os.environ.get("RESOLUTE_ADVERTISED_ADDRESS", "127.0.0.1:8080"),
        tls=ClientTls.read(Path(authority)) if authority else None,
        runs_directory=Path(os.environ.get("RESOLUTE_RUNS_DIR") or environment.data_directory / "runs"),
        slots=int(slots) if slots else None,
        nodes=int(os.environ.get("RESOLUTE_LOCAL_NODES") or 1),
        log_wait=float(os.environ.get("RESOLUTE_LOG_WAIT") or 10),
        openid=OpenIdSettings.from_environment(os.environ),
        resources=resources_of(os.environ, environment.home),
        cluster_defaults={
            "checkpoint_storage": {
                "type": "shared_fs",
                "host_path": str(environment.checkpoints_directory),
            }
        },
    )
    return ExperimentsService(environment, settings)

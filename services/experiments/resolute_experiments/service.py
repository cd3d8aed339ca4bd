"""Assembles the experiments service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from functools import partial

import grpc
import structlog
from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import (
    access_service_pb2_grpc,
    alerts_service_pb2_grpc,
    allocations_service_pb2_grpc,
    boards_service_pb2_grpc,
    cluster_service_pb2_grpc,
    config_policies_service_pb2_grpc,
    continuation_service_pb2_grpc,
    experiments_service_pb2_grpc,
    imports_service_pb2_grpc,
    jobs_service_pb2_grpc,
    retention_service_pb2_grpc,
    roles_service_pb2_grpc,
    secrets_service_pb2_grpc,
    trials_service_pb2_grpc,
    workspaces_service_pb2_grpc,
)
from resolute.contracts.tasks import end_tasks
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.settings import ONLY_LOCAL
from resolute_experiments.accounts.access_lookup import StoredAccessLookup
from resolute_experiments.accounts.issuing import OPERATOR, TokenIssuer
from resolute_experiments.accounts.openid.id_tokens import IdTokenVerifier
from resolute_experiments.accounts.refusal_log import RefusalLog
from resolute_experiments.accounts.secrets import Secrets
from resolute_experiments.accounts.servicers.access import UserHandlers
from resolute_experiments.accounts.servicers.boards import BoardsServicer
from resolute_experiments.accounts.servicers.projects import ProjectHandlers
from resolute_experiments.accounts.servicers.roles import RolesServicer
from resolute_experiments.accounts.servicers.secrets import SecretsServicer
from resolute_experiments.accounts.servicers.tokens import TokenHandlers
from resolute_experiments.accounts.servicers.user_settings import SettingHandlers
from resolute_experiments.accounts.servicers.workspaces import WorkspaceHandlers
from resolute_experiments.accounts.storage_quotas import StorageQuota
from resolute_experiments.accounts.store import projects, tokens, users
from resolute_experiments.admission.acceptance import Admission
from resolute_experiments.admission.config_reader import ConfigReader
from resolute_experiments.admission.id_assignment import assign_ids
from resolute_experiments.admission.storage_roots import StorageRoots
from resolute_experiments.admission.submissions import Submissions
from resolute_experiments.alerts.certificates import Certificates
from resolute_experiments.alerts.delivery import AlertDelivery, Endpoints
from resolute_experiments.alerts.watching import AlertWatch, Observed
from resolute_experiments.allocations.engine_runs import EngineRuns
from resolute_experiments.allocations.fleet import Fleet
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.allocations.run_spans import RunSpans
from resolute_experiments.allocations.run_specs import RunSpecs
from resolute_experiments.clients import Clients
from resolute_experiments.context import ServiceContext
from resolute_experiments.gauges import ServiceGauges
from resolute_experiments.guard.watch import GuardWatch
from resolute_experiments.lifecycle.controller import ExperimentController
from resolute_experiments.lifecycle.controllers import Controllers
from resolute_experiments.lifecycle.metrics_copy import MetricsCopy
from resolute_experiments.retention.deferred import DeferredRetention
from resolute_experiments.retention.live import LiveRetention
from resolute_experiments.scheduling.draining import drain
from resolute_experiments.scheduling.scheduler import Scheduler
from resolute_experiments.scheduling.wait_reasons import WaitReasons
from resolute_experiments.servicers.alerts import AlertsServicer
from resolute_experiments.servicers.allocations import AllocationsServicer
from resolute_experiments.servicers.cluster import ClusterHandlers
from resolute_experiments.servicers.config_policies import ConfigPoliciesServicer
from resolute_experiments.servicers.continuations import ContinuationServicer
from resolute_experiments.servicers.experiments import ExperimentsServicer
from resolute_experiments.servicers.imports import ImportsServicer
from resolute_experiments.servicers.jobs import JobsServicer
from resolute_experiments.servicers.retention import RetentionServicer
from resolute_experiments.servicers.run_files import RunFileHandlers
from resolute_experiments.servicers.server import ServerHandlers
from resolute_experiments.servicers.trials import TrialHandlers
from resolute_experiments.settings import ExperimentsSettings
from resolute_experiments.store import experiments
from resolute_experiments.store.schema import IDEMPOTENCY_KEYS
from resolute_experiments.topics import Topic
from resolute_experiments.unmanaged.heartbeats import HeartbeatMonitor
from resolute_serving.auth.signing_keys import KeyFile
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import Role, TrialRun, User
from resolute_serving.database.remembered import Remembered
from resolute_serving.notifier import Notifier
from resolute_serving.observability.asked_disks import AskedDisks
from resolute_serving.observability.gauges import Gauge
from resolute_serving.server.handlers import combine_handlers
from resolute_serving.server.service import Environment
from resolute_serving.workers.threads import BoundedThreads

_log = structlog.get_logger("experiments")
_FIRST_USERS = (OPERATOR, User(users.DETERMINED_USER, Role.EDITOR))
_ENDPOINT_TESTS = 4
"""Most tests of endpoints of alerts at the same time."""


class ExperimentsService:
    """The experiments service: it owns experiments, trials, runs, allocations, users, and calls others.

    Args:
        environment: The parameters of every service.
        settings: Settings of this service.
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
            "Alerts",
            "Secrets",
            "Boards",
            "Imports",
        )
    )

    def __init__(self, environment: Environment, settings: ExperimentsSettings) -> None:
        self._environment = environment
        self._clock = environment.clock
        self._ended = environment.revoked
        self._config_reader = ConfigReader(settings.cluster_defaults)
        openid = settings.openid
        self._id_tokens = IdTokenVerifier(openid, environment.clock) if openid is not None else None
        self._settings = settings
        self._signer = TokenSigner(
            KeyFile(environment.signing_key), cluster_id=environment.cluster_id, clock=environment.clock
        )
        self._core = ServiceContext(
            database=environment.open_database("experiments"),
            notifier=Notifier[Topic](),
            clock=environment.clock,
            cluster_id=environment.cluster_id,
            preemption_timeout=settings.preemption_timeout,
        )
        self.access_lookup = StoredAccessLookup(self._core.database)
        self._clients = Clients(environment.peers)
        self._leases = Leases(environment.clock, ttl=settings.lease_ttl)
        self._run_spans = RunSpans(os.environ)
        self._fleet = self._open_fleet(environment, settings)
        self._wait_reasons = WaitReasons(self._fleet.wait_reason)
        self._scheduler = self._open_scheduler()
        self._gauges = ServiceGauges(
            self._core.database, fleet=self._fleet, scheduler=self._scheduler, clock=environment.clock
        )
        self._metrics_copy = MetricsCopy(
            self._core.database,
            clients=self._clients,
            notifier=self._core.notifier,
            clock=environment.clock,
        )
        self._guard_watch = GuardWatch(self._core, clients=self._clients)
        self._controllers = self._open_controllers()
        self._heartbeats = HeartbeatMonitor(self._core, adopt=self._controllers.adopt)
        self._deferred_retention = DeferredRetention(
            self._core, clients=self._clients, unreported=self._fleet.unreported
        )
        self._live_retention = LiveRetention(
            self._core, clients=self._clients, unreported=self._fleet.unreported
        )
        sealer = settings.secrets_key.open(environment.data_directory / "secrets.key")
        self._sealer = sealer
        self._secrets = Secrets(sealer)
        self._endpoints = Endpoints(sealer, settings.alerts)
        self._endpoint_tests = BoundedThreads("alert-tests", threads=_ENDPOINT_TESTS)
        self._alert_delivery = AlertDelivery(self._core, self._endpoints)
        self._disks = AskedDisks(settings.directories(environment), clock=environment.clock)
        self._storage_quota = StorageQuota(self._core.database, self._clients)
        self._alert_watch = self._open_alert_watch()
        self._idempotency_sweeper = IDEMPOTENCY_KEYS.sweeper(self._core.database, clock=environment.clock)
        self._refusal_log = RefusalLog(self._core.database, environment.refusals, clock=environment.clock)
        self._revoked = Remembered(self._core.database, self._read_revoked)
        self._tasks: list[asyncio.Task[None]] = []

    def _open_fleet(self, environment: Environment, settings: ExperimentsSettings) -> Fleet:
        given = EngineEnvironment(
            cluster_id=environment.cluster_id,
            address=settings.address,
            tls=settings.tls,
            remote_tls=settings.remote_tls,
            http_url=settings.http_url,
            outage_timeout=settings.outage_timeout,
            log_wait=settings.log_wait,
            runs_directory=settings.runs_directory,
            slots=settings.slots,
            nodes=settings.nodes,
            starts_ahead=environment.starts_ahead,
        )
        specs = RunSpecs(
            database=self._core.database,
            make_directory=self._clients.make_workspace_directory,
            issue_token=self._issue_token,
            address=settings.address,
        )
        engines = [
            EngineRuns(
                create_engine(engine, given),
                self._core,
                name=engine.name,
                leases=self._leases,
                specs=specs,
                spans=self._run_spans,
            )
            for engine in settings.engines
        ]
        resources = settings.resources or ONLY_LOCAL
        return Fleet(
            engines, default_pool=resources.default_pool, pools_are_named=settings.resources is not None
        )

    def _open_scheduler(self) -> Scheduler:
        return Scheduler(
            self._core.database,
            fleet=self._fleet,
            notifier=self._core.notifier,
            clock=self._clock,
            wait_reasons=self._wait_reasons,
            preemption_timeout=self._settings.preemption_timeout,
            spans=self._run_spans,
        )

    def _open_controllers(self) -> Controllers:
        controller = partial(
            ExperimentController,
            core=self._core,
            clients=self._clients,
            lease_ttl=self._settings.lease_ttl,
            machines=self._fleet,
            copy_metrics=self._metrics_copy.refresh,
            judge=self._guard_watch.look_at,
        )
        return Controllers(self._core.notifier, controller=controller)

    def _open_alert_watch(self) -> AlertWatch:
        return AlertWatch(
            self._core,
            Observed(
                problems=self._problems,
                nodes=self._fleet.pools.node_counts,
                certificates=Certificates(self._settings.certificates).ends,
                storage=self._storage_quota.used,
            ),
        )

    @property
    def slot_count(self) -> int:
        """Slots of the cluster."""
        return self._fleet.pools.slot_count

    async def gauges(self) -> Sequence[Gauge]:
        """Returns the numbers of experiments, trials, slots and the queue."""
        return await self._gauges.gauges()

    def register(self, server: grpc.aio.Server) -> None:
        """Adds its handlers to a server that has not started."""
        storage_roots = StorageRoots(
            self._core.database,
            self._clients,
            shared=self._settings.shared,
            default=self._settings.cluster_defaults.get("checkpoint_storage") or {},
        )
        self._register_experiments(server, storage_roots)
        self._register_runs(server, storage_roots)
        self._register_people(server)
        self._register_cluster(server)

    def _register_experiments(self, server: grpc.aio.Server, storage_roots: StorageRoots) -> None:
        submissions = Submissions(
            self._core.database,
            clock=self._clock,
            admission=self._admission,
            storage_quota=self._storage_quota,
            storage_roots=storage_roots,
            reader=self._config_reader,
            clients=self._clients,
        )
        experiments_service_pb2_grpc.add_ExperimentsServiceServicer_to_server(
            ExperimentsServicer(
                self._core,
                wait_reasons=self._wait_reasons,
                submissions=submissions,
                adopt=self._controllers.adopt,
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
                storage_quota=self._storage_quota,
                storage_roots=storage_roots,
                adopt=self._controllers.adopt,
            ),
            server,
        )

    def _register_runs(self, server: grpc.aio.Server, storage_roots: StorageRoots) -> None:
        trials_service_pb2_grpc.add_TrialsServiceServicer_to_server(
            combine_handlers(
                trials_service_pb2_grpc.TrialsServiceServicer,
                TrialHandlers(
                    self._core,
                    wait_reasons=self._wait_reasons,
                    signer=self._signer,
                    reader=self._config_reader,
                    heartbeats=self._heartbeats,
                    storage_quota=self._storage_quota,
                    storage_roots=storage_roots,
                    token_ttl=self._token_ttl,
                ),
                RunFileHandlers(self._core, self._fleet.pools),
            ),
            server,
        )
        allocations_service_pb2_grpc.add_AllocationsServiceServicer_to_server(
            AllocationsServicer(
                self._core, signer=self._signer, leases=self._leases, token_ttl=self._token_ttl
            ),
            server,
        )

        imports_service_pb2_grpc.add_ImportsServiceServicer_to_server(
            ImportsServicer(
                self._core,
                reader=self._config_reader,
                storage_roots=storage_roots,
                adopt=self._controllers.adopt,
            ),
            server,
        )

    def _register_people(self, server: grpc.aio.Server) -> None:
        issuer = TokenIssuer(self._core, self._signer)
        access_service_pb2_grpc.add_AccessServiceServicer_to_server(
            combine_handlers(
                access_service_pb2_grpc.AccessServiceServicer,
                UserHandlers(
                    self._core,
                    self._signer,
                    issuer=issuer,
                    revoked=self._ended,
                    refusals=self._environment.refusals,
                    id_tokens=self._id_tokens,
                ),
                TokenHandlers(self._core, issuer, revoked=self._ended),
                SettingHandlers(self._core),
            ),
            server,
        )
        roles_service_pb2_grpc.add_RolesServiceServicer_to_server(RolesServicer(self._core), server)
        workspaces_service_pb2_grpc.add_WorkspacesServiceServicer_to_server(
            combine_handlers(
                workspaces_service_pb2_grpc.WorkspacesServiceServicer,
                WorkspaceHandlers(self._core, self._storage_quota),
                ProjectHandlers(self._core),
            ),
            server,
        )
        alerts_service_pb2_grpc.add_AlertsServiceServicer_to_server(
            AlertsServicer(
                self._core,
                reader=self._config_reader,
                endpoints=self._endpoints,
                threads=self._endpoint_tests,
            ),
            server,
        )
        boards_service_pb2_grpc.add_BoardsServiceServicer_to_server(BoardsServicer(self._core), server)
        secrets_service_pb2_grpc.add_SecretsServiceServicer_to_server(
            SecretsServicer(self._core, self._secrets), server
        )
        config_policies_service_pb2_grpc.add_ConfigPoliciesServiceServicer_to_server(
            ConfigPoliciesServicer(self._core, reader=self._config_reader), server
        )

    def _register_cluster(self, server: grpc.aio.Server) -> None:
        cluster_service_pb2_grpc.add_ClusterServiceServicer_to_server(
            combine_handlers(
                cluster_service_pb2_grpc.ClusterServiceServicer,
                ClusterHandlers(self._core, self._fleet, disks=self._disks, reader=self._config_reader),
                ServerHandlers(self._core, settings=self._settings.shown()),
            ),
            server,
        )
        jobs_service_pb2_grpc.add_JobsServiceServicer_to_server(
            JobsServicer(self._core, wait_reasons=self._wait_reasons), server
        )

    async def _problems(self) -> Sequence[str]:
        disks = await self._disks.problems()
        return [*disks.now, *disks.soon, *self._fleet.problems()]

    def _admission(self) -> Admission:
        return Admission(
            cluster_defaults=self._settings.cluster_defaults,
            pools=self._fleet.pools.offered(),
        )

    async def start(self) -> None:
        """Takes up everything that was under way when this service last ended."""
        now = self._clock.time()
        for user in _FIRST_USERS:
            await self._core.database.write(partial(users.ensure, user=user, now=now))
        await self._core.database.write(partial(projects.ensure_uncategorized, owner="admin", now=now))
        await self._core.database.read(self._wait_reasons.load)
        if self._sealer.is_rotated:
            await self._core.database.write(self._renew_secrets)
        self._ended.follow(self._revoked.get, clock=self._clock)
        self._idempotency_sweeper.start()
        await self._fleet.recover()
        for experiment in await self._core.database.read(experiments.live):
            self._controllers.adopt(experiment.id)
        self._tasks = [
            asyncio.create_task(self._fleet.run(), name="fleet"),
            asyncio.create_task(self._scheduler.run(), name="scheduler"),
            asyncio.create_task(self._heartbeats.run(), name="heartbeats"),
            asyncio.create_task(self._deferred_retention.run(), name="deferred-retention"),
            asyncio.create_task(self._live_retention.run(), name="live-retention"),
            asyncio.create_task(self._alert_delivery.run(), name="alert-delivery"),
            asyncio.create_task(self._alert_watch.run(), name="alert-watch"),
            asyncio.create_task(assign_ids(self._core.database, self._clients), name="assign-ids"),
            asyncio.create_task(self._metrics_copy.run(), name="metrics-copy"),
            asyncio.create_task(self._guard_watch.run(), name="guard-watch"),
            asyncio.create_task(self._refusal_log.run(), name="refusal-log"),
        ]

    def _renew_secrets(self, connection: Connection) -> None:
        """Encrypts with the new key what older ones have: then these can be dropped."""
        secrets, documents = self._secrets.renew(connection), self._endpoints.renew(connection)
        _log.warning("older keys of secrets can be dropped now", secrets=secrets, alert_documents=documents)

    async def lose_runs_of_this_machine(self) -> None:
        """Notes that every run is lost whose processes this machine should have: another one has them.

        Called before ``start``, on a machine that has taken over the cluster. Their trials go on as new runs.
        """
        await self._fleet.lose_local()

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
        await end_tasks(*self._tasks)
        await self._controllers.stop()
        await self._idempotency_sweeper.stop()
        await self._refusal_log.write()
        self._ended.unfollow()
        self._endpoint_tests.close()
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

    def _read_revoked(self, connection: Connection) -> Sequence[str]:
        return tokens.revoked(connection, now=self._clock.time())

    @property
    def _token_ttl(self) -> float:
        # A token must outlive an outage that its trial sits out.
        return self._settings.outage_timeout * 2

    def _issue_token(self, run: TrialRun) -> str:
        return self._signer.trial(run, ttl=self._token_ttl)


def create(environment: Environment) -> ExperimentsService:
    """Makes the service from its environment and the variables that ``ExperimentsSettings`` names."""
    return ExperimentsService(environment, ExperimentsSettings.from_environment(os.environ, environment))

// All services of the contract.

import type { Client, Transport } from "@connectrpc/connect";
import { createClient } from "@connectrpc/connect";
import { CheckpointsService } from "../gen/resolute/api/checkpoints/v1/checkpoints_service_pb.js";
import { MediaService } from "../gen/resolute/api/checkpoints/v1/media_service_pb.js";
import { ModelsService } from "../gen/resolute/api/checkpoints/v1/models_service_pb.js";
import { AccessService } from "../gen/resolute/api/experiments/v1/access_service_pb.js";
import { BoardsService } from "../gen/resolute/api/experiments/v1/boards_service_pb.js";
import { ClusterService } from "../gen/resolute/api/experiments/v1/cluster_service_pb.js";
import { ConfigPoliciesService } from "../gen/resolute/api/experiments/v1/config_policies_service_pb.js";
import { ContinuationService } from "../gen/resolute/api/experiments/v1/continuation_service_pb.js";
import { ExperimentsService } from "../gen/resolute/api/experiments/v1/experiments_service_pb.js";
import { ImportsService } from "../gen/resolute/api/experiments/v1/imports_service_pb.js";
import { JobsService } from "../gen/resolute/api/experiments/v1/jobs_service_pb.js";
import { RetentionService } from "../gen/resolute/api/experiments/v1/retention_service_pb.js";
import { RolesService } from "../gen/resolute/api/experiments/v1/roles_service_pb.js";
import { TrialsService } from "../gen/resolute/api/experiments/v1/trials_service_pb.js";
import { WorkspacesService } from "../gen/resolute/api/experiments/v1/workspaces_service_pb.js";
import { LogsService } from "../gen/resolute/api/logs/v1/logs_service_pb.js";
import { MetricsService } from "../gen/resolute/api/metrics/v1/metrics_service_pb.js";
import { SearcherService } from "../gen/resolute/api/searcher/v1/searcher_service_pb.js";

/** A client of each service that people and their programs call. */
export interface Services {
  readonly access: Client<typeof AccessService>;
  readonly boards: Client<typeof BoardsService>;
  readonly checkpoints: Client<typeof CheckpointsService>;
  readonly cluster: Client<typeof ClusterService>;
  readonly configPolicies: Client<typeof ConfigPoliciesService>;
  readonly continuation: Client<typeof ContinuationService>;
  readonly experiments: Client<typeof ExperimentsService>;
  readonly imports: Client<typeof ImportsService>;
  readonly jobs: Client<typeof JobsService>;
  readonly logs: Client<typeof LogsService>;
  readonly media: Client<typeof MediaService>;
  readonly metrics: Client<typeof MetricsService>;
  readonly models: Client<typeof ModelsService>;
  readonly retention: Client<typeof RetentionService>;
  readonly roles: Client<typeof RolesService>;
  readonly searcher: Client<typeof SearcherService>;
  readonly trials: Client<typeof TrialsService>;
  readonly workspaces: Client<typeof WorkspacesService>;
}

/** Clients of all services over one transport. */
export function servicesOver(transport: Transport): Services {
  return {
    access: createClient(AccessService, transport),
    boards: createClient(BoardsService, transport),
    checkpoints: createClient(CheckpointsService, transport),
    cluster: createClient(ClusterService, transport),
    configPolicies: createClient(ConfigPoliciesService, transport),
    continuation: createClient(ContinuationService, transport),
    experiments: createClient(ExperimentsService, transport),
    imports: createClient(ImportsService, transport),
    jobs: createClient(JobsService, transport),
    logs: createClient(LogsService, transport),
    media: createClient(MediaService, transport),
    metrics: createClient(MetricsService, transport),
    models: createClient(ModelsService, transport),
    retention: createClient(RetentionService, transport),
    roles: createClient(RolesService, transport),
    searcher: createClient(SearcherService, transport),
    trials: createClient(TrialsService, transport),
    workspaces: createClient(WorkspacesService, transport),
  };
}

import { ClusterService } from "$gen/resolute/api/experiments/v1/cluster_service_pb.js";
import { JobsService } from "$gen/resolute/api/experiments/v1/jobs_service_pb.js";
import { RolesService } from "$gen/resolute/api/experiments/v1/roles_service_pb.js";
import { WorkspacesService } from "$gen/resolute/api/experiments/v1/workspaces_service_pb.js";
import { clientOf } from "$src/api/services";

export const cluster = clientOf(ClusterService);
export const jobs = clientOf(JobsService);
export const roles = clientOf(RolesService);
export const workspaces = clientOf(WorkspacesService);

// Which experiments use the storage of the workspaces.

import type { ListStorageUsageResponse_ExperimentUsage as Usage } from "$gen/resolute/api/checkpoints/v1/checkpoints_service_pb.js";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { checkpointsService } from "$src/checkpoints/services";
import { services, within } from "$src/api/services";
import { workspaces as service } from "./services";

/** What an experiment uses; a deleted one has no name, and its files are about to be removed. */
export interface Row {
  readonly experimentId: string;
  readonly workspace: string;
  readonly checkpoints: bigint;
  readonly checkpointBytes: bigint;
  readonly mediaBytes: bigint;
  readonly bytes: bigint;
  readonly experiment?: Experiment | undefined;
}

const MOST = 100;

export const rowOf = (workspace: string, { experimentId, checkpointCount, checkpointBytes, mediaBytes }: Usage): Row => ({
  experimentId,
  workspace,
  checkpoints: checkpointCount,
  checkpointBytes,
  mediaBytes,
  bytes: checkpointBytes + mediaBytes,
});

/** Those that use most, the largest first. */
export const largest = (rows: readonly Row[]): Row[] => [...rows].sort((a, b) => Number(b.bytes - a.bytes)).slice(0, MOST);

/** Reads what the experiments of all workspaces use, without their names. */
export async function readUsage(signal: AbortSignal): Promise<Row[]> {
  const { workspaces } = await service.listWorkspaces({ pageSize: 100 }, within(signal));
  const rows: Row[] = [];
  for (const { workspaceId, name } of workspaces) {
    const { experiments } = await checkpointsService.listStorageUsage({ workspaceId }, within(signal));
    rows.push(...experiments.map((one) => rowOf(name, one)));
  }
  return largest(rows);
}

/** The same with the experiments; what was deleted meanwhile has none. */
export const withExperiments = (rows: readonly Row[], signal: AbortSignal): Promise<Row[]> =>
  Promise.all(
    rows.map(async (row) => {
      const experiment = { key: { case: "experimentId", value: row.experimentId } } as const;
      try {
        return { ...row, experiment: (await services.experiments.getExperiment({ experiment, brief: true }, within(signal))).experiment };
      } catch {
        signal.throwIfAborted();
        return row;
      }
    }),
  );

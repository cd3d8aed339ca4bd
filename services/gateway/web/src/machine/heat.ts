// How busy and how warm the nodes are and their GPUs, by what the machines of their runs told last.

import type { MachineUsage } from "$gen/resolute/api/experiments/v1/machine_usage_pb.js";
import { groupBy } from "$src/api/grouping";
import { placeOf } from "./charts";

/** Who works there. */
export interface Worker {
  readonly trialNumber: bigint;
  /** Empty where it is not known. */
  readonly owner: string;
}

/** A node, or one of its GPUs; a share is from 0 to 1, and absent where nobody told. */
export interface Heat {
  readonly node: string;
  /** UUID; empty for the node itself. */
  readonly gpu: string;
  readonly use: number | undefined;
  readonly memory: number | undefined;
  readonly celsius: number | undefined;
  readonly watts: number | undefined;
  readonly workers: readonly Worker[];
}

export interface Told {
  readonly worker: Worker;
  readonly usage: MachineUsage;
}

/** Nodes by name, each followed by its GPUs. */
export function heatOf(told: readonly Told[]): Heat[] {
  const nodes = [...groupBy(told, ({ usage }) => usage.node)].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  return nodes.flatMap(([node, members]) => {
    const gpus = [...new Set(members.flatMap(({ usage }) => usage.series.map(({ name }) => placeOf(name).gpu).filter(Boolean)))].sort();
    return [rowOf(node, "", members), ...gpus.map((gpu) => rowOf(node, gpu, members.filter((one) => names(one, gpu))))];
  });
}

const names = ({ usage }: Told, gpu: string): boolean => usage.series.some(({ name }) => placeOf(name).gpu === gpu);

function rowOf(node: string, gpu: string, members: readonly Told[]): Heat {
  // Runs that share a machine or a GPU tell the same of it; of several containers the fullest counts.
  const most = (quantity: string): number | undefined => {
    const wanted = gpu ? `${gpu}.${quantity}` : quantity;
    const values = members.flatMap(({ usage }) => usage.series.filter(({ name }) => name === wanted).map(({ values }) => values.at(-1) ?? NaN));
    const known = values.filter(Number.isFinite);
    return known.length ? Math.max(...known) : undefined;
  };
  const share = (quantity: string) => {
    const percent = most(quantity);
    return percent === undefined ? undefined : percent / 100;
  };
  return {
    node,
    gpu,
    use: share(gpu ? "gpu_util" : "cpu"),
    memory: share(gpu ? "gpu_used_memory" : "memory"),
    celsius: gpu ? most("gpu_temperature") : undefined,
    watts: gpu ? most("gpu_power") : undefined,
    workers: [...new Map(members.map(({ worker }) => [worker.trialNumber, worker])).values()].sort((a, b) => Number(a.trialNumber - b.trialNumber)),
  };
}

/** Where a temperature is between that of a room and that at which GPUs hold back. */
export const warmth = (celsius: number | undefined): number | undefined => (celsius === undefined ? undefined : Math.min(1, Math.max(0, (celsius - 25) / 65)));

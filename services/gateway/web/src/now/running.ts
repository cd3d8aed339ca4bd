// What a running experiment does, beyond what the queue tells: how far it is, where, and how its metric went.

import type { Slot } from "$gen/resolute/api/experiments/v1/cluster_service_pb.js";
import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { type Trial, TrialState } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { services, within } from "$src/api/services";

const STATES = [TrialState.STARTING, TrialState.RUNNING, TrialState.STOPPING];
const [MOST_TRIALS, MOST_POINTS] = [20, 40];

export interface Doing {
  readonly trials: readonly Trial[];
  /** The metric of its search: of its best trial where that runs, else of the first that runs. */
  readonly values: readonly number[];
}

/** Reads what the trials of an experiment do that hold slots. */
export async function readDoing({ number, bestTrialNumber, searcherMetric: name }: Experiment, signal: AbortSignal): Promise<Doing> {
  const experiment = { key: { case: "number", value: number } } as const;
  const { trials } = await services.trials.listTrials({ experiment, states: STATES, pageSize: MOST_TRIALS, maxHparams: 0 }, within(signal));
  const drawn = trials.find((one) => one.number === bestTrialNumber) ?? trials[0];
  if (!drawn || !name) return { trials, values: [] };
  const series = [{ trialId: drawn.trialId, group: "validation", name }];
  const page = await services.metrics.listSeries({ series, maxPoints: MOST_POINTS }, within(signal));
  return { trials, values: page.series[0]?.values.filter(Number.isFinite) ?? [] };
}

/** The nodes that trials are on, such as "node 0" or "node 3 of pool gpu"; empty where none is known. */
export function whereOf(trials: readonly Trial[], slots: readonly Slot[]): string {
  const numbers = new Set(trials.map(({ number }) => number));
  const several = new Set(slots.map(({ resourcePool }) => resourcePool)).size > 1;
  const held = slots.filter(({ holder }) => holder && numbers.has(holder.trialNumber));
  return [...new Set(held.map(({ node, resourcePool }) => `node ${node}${several ? ` of pool ${resourcePool}` : ""}`))].join(", ");
}

/** The points of a small line, in a box of some size. */
export function sparkPoints(values: readonly number[], width: number, height: number): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const span = most - least || 1;
  return values.map((value, at) => `${((at / Math.max(1, values.length - 1)) * width).toFixed(1)},${(height - ((value - least) / span) * height).toFixed(1)}`).join(" ");
}

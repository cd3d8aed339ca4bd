// Reads what running experiments do.

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

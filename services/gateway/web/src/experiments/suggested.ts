// Names that a filter can compare: those of the hyperparameters of some experiments.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { services, within } from "$src/api/services";
import { leaves } from "$src/api/values";

const [EXPERIMENTS, NAMES] = [5, 100];

/** The hyperparameters of one trial of each of the first experiments that have some, each once. */
export async function hyperparameterNames(experiments: readonly Experiment[], signal: AbortSignal): Promise<string[]> {
  const asked = experiments.filter(({ trialCount }) => trialCount).slice(0, EXPERIMENTS);
  const lists = await Promise.all(
    asked.map(async ({ number }) => {
      const experiment = { key: { case: "number", value: number } } as const;
      const { trials } = await services.trials.listTrials({ experiment, pageSize: 1, maxHparams: NAMES }, within(signal));
      return trials.flatMap(({ hparams }) => leaves(hparams).map(([name]) => name));
    }),
  );
  return [...new Set(lists.flat())];
}

// What a list of experiments has altogether.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { experimentShown } from "$src/api/states";
import { count } from "$src/ui/format";

/** Such as "3 experiments with 18 trials: 2 completed, 1 running". */
export function totalsOf(experiments: readonly Experiment[]): string {
  const trials = experiments.reduce((sum, one) => sum + Number(one.trialCount), 0);
  const states = new Map<string, number>();
  for (const { word } of experiments.map(experimentShown)) states.set(word, (states.get(word) ?? 0) + 1);
  const parts = [...states].sort(([, a], [, b]) => b - a).map(([word, number]) => `${number} ${word}`);
  return `${count(experiments.length, "experiment")} with ${count(trials, "trial")}: ${parts.join(", ")}`;
}

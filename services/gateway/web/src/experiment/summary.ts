// An experiment in one sentence.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { type Trial, TrialState } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { count, shortNumber } from "$src/ui/format";

const WORDS: readonly (readonly [word: string, states: readonly TrialState[]])[] = [
  ["running", [TrialState.STARTING, TrialState.RUNNING, TrialState.STOPPING]],
  ["waiting for a slot", [TrialState.QUEUED]],
  ["waiting for the search", [TrialState.WAITING]],
  ["paused", [TrialState.PAUSED]],
  ["completed", [TrialState.COMPLETED]],
  ["canceled", [TrialState.CANCELED]],
  ["failed", [TrialState.ERROR]],
];

/** Whether trials of it have failed, so that their own reasons can be shown. */
export const hasFailedTrials = ({ trialStateCounts }: Experiment): boolean =>
  trialStateCounts.some(({ state, count }) => state === TrialState.ERROR && count > 0n);

/** Such as "Search random, 3 trials: 1 running, 2 completed. Best loss 0.0123 by trial 2 at step 92." */
export function summary(experiment: Experiment, best: Trial | undefined): string {
  const inStates = (states: readonly TrialState[]) =>
    experiment.trialStateCounts.reduce((sum, one) => sum + (states.includes(one.state) ? Number(one.count) : 0), 0);
  const counts = WORDS.map(([word, states]) => [inStates(states), word] as const)
    .filter(([number]) => number)
    .map(([number, word]) => `${number} ${word}`);
  const total = count(experiment.trialCount, "trial");
  const found = best?.bestValidation?.value;
  const leader =
    best && found !== undefined
      ? ` Best ${experiment.searcherMetric} ${shortNumber(found)} by trial ${best.number} at step ${best.bestValidation?.steps}.`
      : "";
  return `Search ${experiment.searcherName || "none"}, ${total}${counts.length ? `: ${counts.join(", ")}` : ""}.${leader}`;
}

// An experiment in one sentence.

import { type Experiment, ExperimentState } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { type Trial, TrialState } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { hasEnded } from "$src/api/states";
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

/** Whether every trial of it has failed, so that their reasons are its own. */
export const allFailed = ({ trialCount, trialStateCounts }: Experiment): boolean =>
  trialStateCounts.some(({ state, count }) => state === TrialState.ERROR && count === trialCount);

/**
 * Why an experiment has no curves; nothing while it may have some.
 *
 * `started` are all of its trials that have started, where these are known.
 */
export function withoutCurves(experiment: Experiment, started: readonly Trial[] | undefined): string {
  if (!started || !hasEnded(experiment) || started.some((one) => one.reportedSteps !== undefined || one.lastValidation)) return "";
  if (experiment.state === ExperimentState.ERROR) return "It failed before it reported any metric.";
  return started.length ? "It ended before it reported any metric." : "It ended before any trial started.";
}

/** Such as "Search random, 3 trials: 1 running, 2 completed. Best loss 0.0123 by trial 2 at step 92." */
export function summary(experiment: Experiment, best: Trial | undefined): string {
  const inStates = (states: readonly TrialState[]) =>
    experiment.trialStateCounts.reduce((sum, one) => sum + (states.includes(one.state) ? Number(one.count) : 0), 0);
  const counts = WORDS.map(([word, states]) => [inStates(states), word] as const)
    .filter(([number]) => number)
    .map(([number, word]) => `${number} ${experiment.killed && word === "canceled" ? "killed" : word}`);
  const total = count(experiment.trialCount, "trial");
  const found = best?.bestValidation?.value;
  const leader =
    best && found !== undefined
      ? ` Best ${experiment.searcherMetric} ${shortNumber(found)} by trial ${best.number} at step ${best.bestValidation?.steps}.`
      : "";
  return `Search ${experiment.searcherName || "none"}, ${total}${counts.length ? `: ${counts.join(", ")}` : ""}.${leader}`;
}

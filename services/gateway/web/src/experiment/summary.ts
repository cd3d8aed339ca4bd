// An experiment in one sentence.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { type Trial, TrialState } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { shortNumber } from "$src/ui/format";
import { best } from "./ranking";

const WORDS: readonly (readonly [word: string, states: readonly TrialState[]])[] = [
  ["running", [TrialState.STARTING, TrialState.RUNNING, TrialState.STOPPING]],
  ["waiting for a slot", [TrialState.QUEUED]],
  ["waiting for the search", [TrialState.WAITING]],
  ["paused", [TrialState.PAUSED]],
  ["completed", [TrialState.COMPLETED]],
  ["canceled", [TrialState.CANCELED]],
  ["failed", [TrialState.ERROR]],
];

/** Such as "Search random, 3 trials: 1 running, 2 completed. Best loss 0.0123 by trial 2 at step 92." */
export function summary(experiment: Experiment, trials: readonly Trial[]): string {
  const counts = WORDS.map(([word, states]) => [trials.filter(({ state }) => states.includes(state)).length, word] as const)
    .filter(([count]) => count)
    .map(([count, word]) => `${count} ${word}`);
  const count = Math.max(trials.length, Number(experiment.trialCount)); // those that are known come a moment later
  const total = `${count} ${count === 1 ? "trial" : "trials"}`;
  const [top] = best(trials, experiment.smallerIsBetter, 1);
  const found = top?.bestValidation?.value;
  const leader =
    top && found !== undefined
      ? ` Best ${experiment.searcherMetric} ${shortNumber(found)} by trial ${top.number} at step ${top.bestValidation?.steps}.`
      : "";
  return `Search ${experiment.searcherName || "none"}, ${total}${counts.length ? `: ${counts.join(", ")}` : ""}.${leader}`;
}

// The order of trials.

import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";

/** A column of trials by which they can be ordered. */
export type TrialColumn = "number" | "best" | "last" | "steps" | "state" | "restarts";

const VALUES: Readonly<Record<TrialColumn, (trial: Trial) => number | undefined>> = {
  number: (trial) => Number(trial.number),
  best: (trial) => trial.bestValidation?.value,
  last: (trial) => trial.lastValidation?.value,
  steps: (trial) => Number(trial.stepsCompleted),
  state: (trial) => trial.state,
  restarts: (trial) => trial.restarts,
};

/** Orders trials, such as by "best desc"; those without a value come last in both directions. */
export function ordered(trials: readonly Trial[], orderBy: string): Trial[] {
  const [column = "", direction] = orderBy.split(" ");
  const value = VALUES[column in VALUES ? (column as TrialColumn) : "number"];
  const sign = direction === "desc" ? -1 : 1;
  return [...trials].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === right) return Number(a.number - b.number);
    if (left === undefined || right === undefined) return left === undefined ? 1 : -1;
    return sign * (left - right);
  });
}

/** The best trials, best first; those without a validation follow by number. */
export function best(trials: readonly Trial[], smallerIsBetter: boolean, count: number): Trial[] {
  return ordered(trials, smallerIsBetter ? "best" : "best desc").slice(0, count);
}

/** How many trials are wanted, as "10" or "25%" of some; ten where it says nothing. */
export function wantedCount(text: string, of: number, most: number): number {
  const [, number, percent] = /^(\d{1,6})(%?)$/.exec(text.trim()) ?? [];
  const count = number ? (percent ? Math.ceil((Number(number) / 100) * of) : Number(number)) : 10;
  return Math.min(most, Math.max(1, count));
}

/** Whether the last validation of a trial was no finite number. */
export const hasDiverged = ({ lastValidation }: Trial): boolean =>
  lastValidation !== undefined && lastValidation.value === undefined;

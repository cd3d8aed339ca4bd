// What a search has tried: hyperparameters that vary, and the result of each trial.

import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { leafValues, numberOrText } from "$src/api/values";

export interface Sample {
  readonly number: bigint;
  /** Best value of the search's metric; absent where there is none. */
  readonly metric: number | undefined;
  readonly values: ReadonlyMap<string, number | string>;
}

/** The samples of some trials, best first; those without a result come last. */
export function samplesOf(trials: readonly Trial[], smallerIsBetter: boolean): Sample[] {
  const sign = smallerIsBetter ? 1 : -1;
  const cost = ({ metric }: Sample) => (metric === undefined ? Infinity : sign * metric);
  return trials
    .map(({ number, bestValidation, hparams }) => ({
      number,
      metric: bestValidation?.value,
      values: new Map(leafValues(hparams).map(([name, value]) => [name, numberOrText(value)])),
    }))
    .sort((a, b) => (cost(a) === cost(b) ? Number(a.number - b.number) : cost(a) - cost(b)));
}

/** Names of the hyperparameters that have more than one value, ascending. */
export function varied(samples: readonly Sample[]): string[] {
  const seen = new Map<string, Set<number | string>>();
  for (const { values } of samples) {
    for (const [name, value] of values) {
      const known = seen.get(name) ?? new Set();
      seen.set(name, known.add(value));
    }
  }
  return [...seen].filter(([, values]) => values.size > 1).map(([name]) => name).sort();
}

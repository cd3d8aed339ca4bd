// How much each hyperparameter alone explains of the order of the trials.
//
// The trials are ranked by their metric, so that outliers and scales do not count. The share of the ranks' variance that lies
// between groups of one hyperparameter's values (the correlation ratio, corrected for chance) is what it explains alone. Leaving out a
// tenth of the trials at a time (jackknife) says how certain that is.

import { groupBy } from "$src/api/grouping";
import type { Sample } from "./samples";

export interface Importance {
  readonly name: string;
  /** From 0 to 1. */
  readonly share: number;
  /** Standard error of the share. */
  readonly error: number;
}

/** With fewer results nothing is said. */
export const LEAST_RESULTS = 10;
const MOST_GROUPS = 8;
const PARTS = 10;

/** Importances, largest first; none where there are too few results. */
export function importances(samples: readonly Sample[], names: readonly string[]): Importance[] {
  const judged = samples.filter(({ metric }) => metric !== undefined);
  if (judged.length < LEAST_RESULTS) return [];
  return names
    .map((name) => {
      const known = judged.filter(({ values }) => values.has(name));
      const parts = Array.from({ length: PARTS }, (_, part) => explained(known.filter((_, at) => at % PARTS !== part), name));
      const mean = parts.reduce((sum, one) => sum + one, 0) / PARTS;
      const spread = parts.reduce((sum, one) => sum + (one - mean) ** 2, 0);
      return { name, share: explained(known, name), error: Math.sqrt(((PARTS - 1) / PARTS) * spread) };
    })
    .sort((a, b) => b.share - a.share);
}

/** The share for samples that are ordered by their metric. */
function explained(samples: readonly Sample[], name: string): number {
  const groups = groupBy(samples.keys(), groupOf(samples, name));
  const middle = (samples.length - 1) / 2;
  let total = 0;
  for (const rank of samples.keys()) total += (rank - middle) ** 2;
  let between = 0;
  for (const ranks of groups.values()) {
    const mean = ranks.reduce((sum, one) => sum + one, 0) / ranks.length;
    between += ranks.length * (mean - middle) ** 2;
  }
  const [free, rest] = [groups.size - 1, samples.length - groups.size];
  if (free < 1 || rest < 1 || !total) return 0;
  return Math.max(0, (between - (free * (total - between)) / rest) / total);
}

/** The group of each sample: its choice, or the part of the numbers that its own is in. */
function groupOf(samples: readonly Sample[], name: string): (at: number) => string | number {
  const values = samples.map((one) => one.values.get(name));
  const isNumber = values.every((one) => typeof one === "number");
  const distinct = new Set(values).size;
  if (!isNumber || distinct <= MOST_GROUPS) return (at) => values[at] ?? "";
  const count = Math.min(MOST_GROUPS, Math.floor(Math.sqrt(samples.length)));
  const ascending = [...(values as number[]).keys()].sort((a, b) => Number(values[a]) - Number(values[b]));
  const places = new Map(ascending.map((at, place) => [at, Math.floor((place * count) / ascending.length)]));
  return (at) => places.get(at) ?? 0;
}

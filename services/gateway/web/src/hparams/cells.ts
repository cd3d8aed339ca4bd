// A heat map of two hyperparameters: what trials reached in each part of both.

import { stretchesOf, type Scale, type Value } from "$src/plots/axes";
import { shortNumber } from "$src/ui/format";
import type { Sample } from "./samples";

/** A part of an axis: one value, or a stretch of many numbers. */
export interface Part {
  readonly label: string;
  readonly has: (value: Value | undefined) => boolean;
}

export interface Cell {
  /** Places of its parts. */
  readonly x: number;
  readonly y: number;
  readonly trials: number;
  readonly best: number;
  readonly mean: number;
}

const [MOST_VALUES, STRETCHES] = [8, 6];

/** The parts of an axis, ascending: the values where they are few or no numbers, otherwise those stretches of one length that have any. */
export function partsOf(name: string, values: readonly Value[], scale: Scale | undefined): Part[] {
  const distinct = [...new Set(values)];
  const isNumbers = distinct.every((one) => typeof one === "number");
  if (distinct.length <= MOST_VALUES || !isNumbers) {
    const sorted = isNumbers ? (distinct as number[]).sort((a, b) => a - b) : distinct.map(String).sort();
    return sorted.map((one) => ({ label: typeof one === "number" ? shortNumber(one) : one, has: (value) => (isNumbers ? value === one : String(value) === one) }));
  }
  const { of, labels } = stretchesOf(name, distinct as number[], { scale, count: STRETCHES });
  return [...labels].map(([at, label]) => ({ label, has: (value) => of(value) === at }));
}

/** Cells in which there are trials with a result. */
export function cellsOf(samples: readonly Sample[], [x, y]: readonly [Named, Named], smallerIsBetter: boolean): Cell[] {
  const cells = new Map<string, number[]>();
  for (const { values, metric } of samples) {
    const places = [x, y].map(({ name, parts }) => parts.findIndex(({ has }) => has(values.get(name))));
    if (metric === undefined || !Number.isFinite(metric) || places.includes(-1)) continue;
    const key = places.join();
    cells.set(key, [...(cells.get(key) ?? []), metric]);
  }
  return [...cells].map(([key, metrics]) => {
    const [x = 0, y = 0] = key.split(",").map(Number);
    const best = smallerIsBetter ? Math.min(...metrics) : Math.max(...metrics);
    return { x, y, trials: metrics.length, best, mean: metrics.reduce((sum, one) => sum + one, 0) / metrics.length };
  });
}

export interface Named {
  readonly name: string;
  readonly parts: readonly Part[];
}

// Series of metrics as a chart takes them.

import type { Mark } from "$src/plots/marks";

/** Points of a series, ascending by steps. */
export interface Points {
  readonly steps: readonly number[];
  readonly values: readonly number[];
  /** Unix seconds. */
  readonly times: readonly number[];
}

/** What lines run along: what each point has, or another series of the same trial. */
export type XAxis = "steps" | "epochs" | "time" | "metric";

/** A series of a trial, with how it is drawn. */
export interface Curve extends Mark {
  readonly label: string;
  readonly points: Points;
  /** The series that is the horizontal axis: how many epochs had passed at some steps, or a metric. */
  readonly across?: Points | undefined;
}

type Gap = null;

/** A curve, or several together, as it is drawn: x ascends. */
export interface Line extends Mark {
  readonly label: string;
  /** Label of its metric: lines of one metric are compared. */
  readonly metric?: string;
  /** Whether the others of its metric are compared to it. */
  readonly isBaseline?: boolean;
  readonly x: readonly number[];
  readonly y: readonly (number | Gap)[];
  /** The area around it. */
  readonly band?: { readonly low: readonly (number | Gap)[]; readonly high: readonly (number | Gap)[] };
}

export const NO_POINTS: Points = { steps: [], values: [], times: [] };

/** A part of a series that is known in more detail. */
export interface Stretch {
  /** Its first and its last step. */
  readonly range: readonly [number, number];
  readonly points: Points;
}

/** A stretch between its neighbours in the whole series, so that lines go on to the edges of a chart. */
export function around(whole: Points, { range: [least, most], points }: Stretch): Points {
  const before = whole.steps.findLastIndex((step) => step < least);
  const after = whole.steps.findIndex((step) => step > most);
  const join = (outer: readonly number[], inner: readonly number[]) => [
    ...(before < 0 ? [] : outer.slice(before, before + 1)),
    ...inner,
    ...(after < 0 ? [] : outer.slice(after, after + 1)),
  ];
  return { steps: join(whole.steps, points.steps), values: join(whole.values, points.values), times: join(whole.times, points.times) };
}

/** Points with some appended, or replaced by them. */
export function received(points: Points, news: Points & { readonly reset: boolean }): Points {
  if (news.reset) return { steps: news.steps, values: news.values, times: news.times };
  return {
    steps: [...points.steps, ...news.steps],
    values: [...points.values, ...news.values],
    times: [...points.times, ...news.times],
  };
}

/**
 * Smooths values by an exponential average that begins without a bias towards zero.
 *
 * Values that are no numbers stay as they are, so that gaps are seen.
 */
export function smoothed(values: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...values];
  let sum = 0;
  let total = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    sum = sum * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    return sum / total;
  });
}

/**
 * Epochs at some ascending steps, in a straight line between those that are known, and in proportion before and after them.
 *
 * @returns One for each step; none at all where nothing is known.
 */
export function epochsAt(epochs: Points, steps: readonly number[]): number[] {
  const known = epochs.steps.flatMap((step, at) => (step > 0 && Number.isFinite(epochs.values[at]) ? [[step, epochs.values[at] ?? 0] as const] : []));
  const [first, last] = [known[0], known.at(-1)];
  if (!first || !last) return [];
  let next = 0;
  return steps.map((step) => {
    while (next < known.length && (known[next]?.[0] ?? 0) < step) next += 1;
    const [before, after] = [known[next - 1], known[next]];
    if (!before || !after) {
      const [knownStep, epoch] = before ? last : first;
      return (epoch * step) / knownStep;
    }
    const share = (step - before[0]) / (after[0] - before[0]);
    return before[1] + share * (after[1] - before[1]);
  });
}

/** Values at some ascending places, in a straight line between those that are known, ascending too; none outside of them. */
export function valuesAt(known: readonly number[], values: readonly number[], places: readonly number[]): (number | undefined)[] {
  let next = 0;
  return places.map((place) => {
    while (next < known.length && (known[next] ?? 0) < place) next += 1;
    const [after, value] = [known[next], values[next]];
    if (after === undefined || value === undefined || after === place) return value;
    const [before, last] = [known[next - 1], values[next - 1]];
    return before === undefined || last === undefined ? undefined : last + ((place - before) / (after - before)) * (value - last);
  });
}

/** How curves become lines. */
export interface Drawn {
  readonly axis: XAxis;
  readonly smoothing: number;
  readonly log: boolean;
}

/** The line of a curve; what cannot be drawn is null, which leaves a gap. */
export function lineOf({ points, across = NO_POINTS, ...mark }: Curve, { axis, smoothing, log }: Drawn): Line {
  const y = smoothed(points.values, smoothing).map((value) => (Number.isFinite(value) && !(log && value <= 0) ? value : null));
  const placed = axis === "metric" ? byMetric(valuesAt(across.steps, across.values, points.steps), y) : ascending(xOf(points, across, axis), y);
  return { ...mark, x: placed[0], y: placed[1] };
}

function xOf({ steps, times }: Points, across: Points, axis: XAxis): number[] {
  const begin = times[0] ?? 0;
  if (axis === "time") return times.map((time) => time - begin);
  return axis === "epochs" ? epochsAt(across, steps) : [...steps];
}

/** Orders points by the metric that is their horizontal axis, which may fall while steps rise; those without it are left out. */
function byMetric(x: readonly (number | undefined)[], y: readonly (number | Gap)[]): [number[], (number | Gap)[]] {
  const known = x.flatMap((at, index) => (at !== undefined && Number.isFinite(at) ? [[at, y[index] ?? null] as const] : []));
  known.sort(([a], [b]) => a - b);
  return ascending(known.map(([at]) => at), known.map(([, value]) => value));
}

/**
 * Positions of values that a line cannot show: those with a gap, or nothing, on both sides.
 *
 * @param values Of one of several curves that were put together: null is a gap, and undefined the place of another curve's point.
 */
export function isolated(values: ArrayLike<number | null | undefined>): number[] {
  const found: number[] = [];
  let [count, first] = [0, -1];
  for (let at = 0; at <= values.length; at += 1) {
    const value = at < values.length ? values[at] : null;
    if (value === undefined) continue;
    if (value !== null) {
      if (!count) first = at;
      count += 1;
    } else {
      if (count === 1) found.push(first);
      count = 0;
    }
  }
  return found;
}

/** Keeps x strictly ascending, as charts want it: of points with one x the last is drawn. */
function ascending(x: number[], y: (number | Gap)[]): [number[], (number | Gap)[]] {
  if (!x.length) return [[], []];
  const kept = x.map((_, index) => index).filter((index) => index === x.length - 1 || (x[index + 1] ?? 0) > (x[index] ?? 0));
  if (kept.length === x.length) return [x, y];
  let last = -Infinity;
  const rising = kept.filter((index) => {
    const at = x[index] ?? 0;
    if (at <= last) return false;
    last = at;
    return true;
  });
  return [rising.map((index) => x[index] ?? 0), rising.map((index) => y[index] ?? null)];
}

// What a chart says of the place at which a person points.

import type { Curve, Line, XAxis } from "$src/curves/series";

/** The point of a line that is nearest to the pointer. */
export interface Pointed {
  readonly line: Line;
  readonly x: number;
  readonly value: number;
}

type Column = ArrayLike<number | null | undefined>;

/**
 * The nearest point of each line, by value, largest first. Lines that have none left out.
 *
 * @param data X, and the values of each line at it: null is a gap, and undefined the place of another line's point.
 * @param index Where the pointer is in x.
 */
export function pointsAt(lines: readonly Line[], data: readonly Column[], index: number): Pointed[] {
  const x = data[0] ?? [];
  return lines
    .flatMap((line, place): Pointed[] => {
      const values = data[place + 1] ?? [];
      const at = nearest(values, x, index);
      return at === undefined ? [] : [{ line, x: x[at] ?? 0, value: values[at] ?? 0 }];
    })
    .sort((a, b) => b.value - a.value);
}

/** Some of them: those around the value at which the pointer is, in their order. */
export function closest(points: readonly Pointed[], value: number, most: number): readonly Pointed[] {
  if (points.length <= most) return points;
  const below = points.findIndex((one) => one.value <= value);
  const middle = below < 0 ? points.length : below;
  const first = Math.max(0, Math.min(points.length - most, middle - Math.floor(most / 2)));
  return points.slice(first, first + most);
}

function nearest(values: Column, x: Column, index: number): number | undefined {
  const isPoint = (at: number) => typeof values[at] === "number";
  let [before, after] = [index, index + 1];
  while (before >= 0 && !isPoint(before)) before -= 1;
  while (after < values.length && !isPoint(after)) after += 1;
  if (before < 0) return after < values.length ? after : undefined;
  if (after >= values.length) return before;
  const here = x[index] ?? 0;
  return here - (x[before] ?? 0) <= (x[after] ?? 0) - here ? before : after;
}

/** Values that no line shows, by what they are. */
export interface Unplotted {
  readonly nan: number;
  readonly infinite: number;
  /** At or below zero, of which there is no logarithm. */
  readonly belowLog: number;
}

export function unplotted(curves: readonly Curve[], log: boolean): Unplotted {
  let [nan, infinite, belowLog] = [0, 0, 0];
  for (const { points } of curves) {
    for (const value of points.values) {
      if (Number.isNaN(value)) nan += 1;
      else if (!Number.isFinite(value)) infinite += 1;
      else if (log && value <= 0) belowLog += 1;
    }
  }
  return { nan, infinite, belowLog };
}

/** Such as "3 NaN, 1 infinite"; empty where all values are drawn. */
export function unplottedText({ nan, infinite, belowLog }: Unplotted): string {
  const parts = [nan && `${nan} NaN`, infinite && `${infinite} infinite`, belowLog && `${belowLog} not above 0`];
  return parts.filter(Boolean).join(", ");
}

/** A value that is no number, to be marked at an edge of the chart. */
export interface EdgeMark {
  readonly x: number;
  readonly isAbove: boolean;
  readonly color: string;
}

/** Marks at the edges for NaN and −∞ (below) and ∞ (above), where steps or times are the axis. */
export function edgeMarks(curves: readonly Curve[], axis: XAxis, most: number): EdgeMark[] {
  if (axis === "epochs" || axis === "metric") return [];
  const marks: EdgeMark[] = [];
  for (const { points, color } of curves) {
    const begin = points.times[0] ?? 0;
    points.values.forEach((value, at) => {
      if (Number.isFinite(value) || marks.length >= most) return;
      const x = axis === "steps" ? points.steps[at] : (points.times[at] ?? 0) - begin;
      marks.push({ x: x ?? 0, isAbove: value === Infinity, color });
    });
  }
  return marks;
}

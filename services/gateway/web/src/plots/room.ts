// How many trials a chart has room for: the series of all of them come in one stream.

import { metricLabel, type Metric } from "./metric";
import type { PlotOptions } from "./options";

/** Series that one stream takes. */
export const MOST_SERIES = 500;

/**
 * The series of a trial that may be the horizontal axis of one of its metrics, the likeliest first.
 *
 * How many epochs have passed is told with each report; where it is not, training tells it at other steps.
 */
export function acrossOf(group: string, { axis, across }: Pick<PlotOptions, "axis" | "across">): Metric[] {
  if (across) return [across];
  if (axis !== "epochs") return [];
  return [{ group, name: "epochs" }, { group, name: "epoch" }, { group: "training", name: "epochs" }];
}

export interface Room {
  /** How many trials. */
  readonly trials: number;
  /** How many series that may be the horizontal axis are looked at, of each metric. */
  readonly axes: number;
}

/** The room of a chart of some metrics of so many trials: of very many only the likeliest axis is looked at. */
export function roomOf(metrics: readonly Metric[], options: Pick<PlotOptions, "axis" | "across">, count: number): Room {
  const most = (axes: number): number => {
    const series = metrics.flatMap((one) => [one, ...acrossOf(one.group, options).slice(0, axes)]);
    return Math.max(1, Math.floor(MOST_SERIES / new Set(series.map(metricLabel)).size));
  };
  const axes = most(Infinity) >= count ? Infinity : 1;
  return { trials: most(axes), axes };
}

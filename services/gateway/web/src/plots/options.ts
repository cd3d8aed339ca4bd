// How charts of a view are drawn, as the URL has it.

import { BANDS, type Band } from "$src/curves/groups";
import type { Drawn, XAxis } from "$src/curves/series";
import { parseMetric, readMetrics, type Metric } from "./metric";
import { readRange, readRanges, type Range, type Ranges } from "./ranges";

export interface PlotOptions extends Drawn {
  /** The metric that is the horizontal axis. */
  readonly across: Metric | undefined;
  /** What is shown of x, in all charts; all without it. */
  readonly range: Range | undefined;
  /** What is shown of y, by the charts' titles. */
  readonly heights: Ranges;
  /** The trait of which each value is one line. */
  readonly group: string;
  readonly band: Band;
  /** The trait that colours lines. */
  readonly color: string;
  /** Metrics that are drawn in the same chart. */
  readonly also: readonly Metric[];
  /** Number of the trial that others are compared to. */
  readonly baseline: bigint | undefined;
}

const AXES: readonly XAxis[] = ["steps", "epochs", "time"];

/** Reads the parameters of a URL; what is wrong there counts as not given. */
export function readPlotOptions(parameter: (name: string) => string): PlotOptions {
  const smoothing = Number(parameter("smooth"));
  const across = parseMetric(parameter("axis"));
  return {
    axis: across ? "metric" : (AXES.find((one) => one === parameter("axis")) ?? "steps"),
    across,
    log: parameter("log") === "1",
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    range: readRange(parameter("zoom")),
    heights: readRanges(parameter("heights")),
    group: parameter("group"),
    band: BANDS.find((one) => one === parameter("band")) ?? "std",
    color: parameter("color"),
    also: readMetrics(parameter("also")),
    baseline: /^[1-9]\d{0,17}$/.test(parameter("baseline")) ? BigInt(parameter("baseline")) : undefined,
  };
}

/** What the horizontal axis is called. */
export function axisTitle({ axis, across }: Pick<PlotOptions, "axis" | "across">): string {
  if (axis === "metric") return across ? `${across.group}/${across.name}` : "";
  return { steps: "Steps", epochs: "Epochs", time: "Time since the first point" }[axis];
}

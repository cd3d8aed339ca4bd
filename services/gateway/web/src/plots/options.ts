// How charts of a view are drawn, as the URL has it.

import type { XAxis } from "./series";

export interface PlotOptions {
  readonly axis: XAxis;
  readonly log: boolean;
  readonly smoothing: number;
  readonly range: readonly [number, number] | undefined;
}

const AXES: readonly XAxis[] = ["steps", "epochs", "time"];

/** Reads the parameters of a URL; what is wrong there counts as not given. */
export function readPlotOptions(parameter: (name: string) => string): PlotOptions {
  const smoothing = Number(parameter("smooth"));
  const [least, most] = parameter("zoom").split("~").map(Number);
  const isRange = least !== undefined && most !== undefined && Number.isFinite(least) && least < most;
  return {
    axis: AXES.find((one) => one === parameter("axis")) ?? "steps",
    log: parameter("log") === "1",
    smoothing: smoothing > 0 && smoothing < 1 ? smoothing : 0,
    range: isRange ? [least, most] : undefined,
  };
}

/** A range as the URL has it. */
export function writtenRange(range: readonly [number, number] | undefined): string {
  return range ? range.map((bound) => String(Number(bound.toPrecision(8)))).join("~") : "";
}

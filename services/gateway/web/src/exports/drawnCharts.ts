// Charts as they are drawn now, by the elements that hold them, for documents that take their pictures.

import type uPlot from "uplot";
import type { Line } from "$src/curves/series";
import type { DrawnTicks } from "$src/plots/drawing";

interface DrawnChart {
  readonly chart: { readonly plot: uPlot; readonly ticks: DrawnTicks };
  readonly lines: readonly Line[];
  readonly titles: { readonly title: string; readonly x: string };
}

export const drawnCharts = new WeakMap<Element, DrawnChart>();

// What uPlot is told of a chart.

import uPlot from "uplot";
import { isolated, type Line } from "$src/curves/series";
import { shortNumber } from "$src/ui/format";
import type { EdgeMark } from "./pointed";
import { drawable, type Range } from "./ranges";

/** Lines of one pixel are drawn many times faster, and hundreds of wider ones hide each other. */
const MANY = 30;
const LETTER = 5.6;
const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];
/** Distances of ticks along an axis of seconds. */
export const TIME_STEPS = [
  ...[1, 2, 5, 10, 15, 30],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((days) => days * DAY),
];

/** What a chart is made with; what may change afterwards is asked for when it is drawn. */
export interface Chart {
  readonly lines: readonly Line[];
  readonly width: number;
  readonly height: number;
  readonly log: boolean;
  readonly titles: { readonly x: string; readonly y: string };
  readonly sync: string | undefined;
  readonly xText: (value: number) => string;
  /** Whether x is seconds: their round numbers are minutes and hours. */
  readonly isTime: boolean;
  readonly ranges: () => { readonly x: Range | undefined; readonly y: Range | undefined };
  readonly edges: () => readonly EdgeMark[];
  readonly selected: (x: Range | undefined, y: Range | undefined) => void;
  readonly pointed: (plot: uPlot) => void;
  readonly marked: (line: number | undefined) => void;
}

/** Positions along an axis, with their texts. */
export type Ticks = readonly { readonly at: number; readonly text: string }[];
export interface DrawnTicks {
  x: Ticks;
  y: Ticks;
}

/** X, and for each line its values, which those of its band follow. */
export const dataOf = (lines: readonly Line[]): uPlot.AlignedData =>
  lines.length ? uPlot.join(lines.map(tableOf)) : [[]];

// uPlot changes nothing of it.
const tableOf = ({ x, y, band }: Line) => [x, y, ...(band ? [band.high, band.low] : [])] as unknown as uPlot.AlignedData;

/** Where the values of each line are in the data. */
export function columnsOf(lines: readonly Line[]): number[] {
  let next = 1;
  return lines.map(({ band }) => {
    const own = next;
    next += band ? 3 : 1;
    return own;
  });
}

/** Options of a chart, and the ticks that it has once it is drawn. */
export function optionsOf(chart: Chart): { options: uPlot.Options; ticks: DrawnTicks } {
  const ticks: DrawnTicks = { x: [], y: [] };
  const columns = columnsOf(chart.lines);
  const style = getComputedStyle(document.documentElement);
  const [dim, grid] = [style.getPropertyValue("--dim"), style.getPropertyValue("--grid")];
  const fonts = { font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif" };
  const axis = { stroke: dim, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, labelGap: 0, labelSize: 16, ...fonts };
  const yTitle = shortened(chart.titles.y, (chart.height - 44) / LETTER);
  const told = (name: keyof DrawnTicks, splits: readonly (number | null)[], text: (value: number) => string): string[] => {
    const texts = splits.map((value) => (value === null ? "" : text(value)));
    ticks[name] = splits.flatMap((at, index) => (at === null ? [] : [{ at, text: texts[index] ?? "" }]));
    return texts;
  };
  const options: uPlot.Options = {
    width: chart.width,
    height: chart.height,
    scales: {
      x: { time: false, range: (_, least, most) => [...(drawable(chart.ranges().x) ?? [least, most])] },
      y: { distr: chart.log ? 3 : 1, range: (_, least, most) => [...(drawable(chart.ranges().y, chart) ?? roomy(least, most, chart.log))] },
    },
    axes: [
      { ...axis, ...(chart.isTime ? { incrs: TIME_STEPS } : {}), size: 24, label: chart.titles.x, values: (_, splits) => told("x", splits, chart.xText) },
      { ...axis, size: (_, texts) => heightsRoom(texts), label: yTitle, values: (_, splits) => told("y", splits, shortNumber) },
    ],
    ...seriesOf(chart.lines),
    legend: { show: false },
    focus: { alpha: 0.25 },
    cursor: {
      focus: { prox: 24 },
      drag: { x: true, y: true, uni: 24, setScale: false },
      bind: { mousedown: (_, __, handler) => (event) => (event.shiftKey ? null : handler(event)), dblclick: () => null },
      ...(chart.sync ? { sync: { key: chart.sync, setSeries: false, filters: { pub: (type) => type.startsWith("mousem") || type === "mouseleave" } } } : {}),
    },
    hooks: {
      setSelect: [(plot) => select(plot, chart.selected)],
      setCursor: [chart.pointed],
      draw: [(plot) => drawEdges(plot, chart.edges())],
      setSeries: [(_, index) => chart.marked(index ? columns.findLastIndex((own) => own <= index) : undefined)],
    },
  };
  return { options, ticks };
}

/** How wide the axis of heights is, in pixels: its title and its longest tick stand side by side. */
export const heightsRoom = (ticks: readonly string[] | null): number => Math.max(52, 20 + 6.5 * Math.max(0, ...(ticks ?? []).map(({ length }) => length)));

const shortened = (text: string, most: number): string => (text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text);

/** Bounds with some room around values, of which there may be none. */
function roomy(least: number, most: number, log: boolean): uPlot.Range.MinMax {
  if (least === null || most === null) return [null, null] as unknown as uPlot.Range.MinMax; // as uPlot does it itself
  if (log) return uPlot.rangeLog(least, most, 10, false);
  return uPlot.rangeNum(least, drawable([least, most]) ? most : least, 0.1, true);
}

function seriesOf(lines: readonly Line[]): Pick<uPlot.Options, "series" | "bands"> {
  const usual = lines.length > MANY ? 1 : 1.5;
  const edge: uPlot.Series = { width: 0, points: { show: false } };
  const columns = columnsOf(lines);
  return {
    series: [
      {},
      ...lines.flatMap(({ label, color, dash, width = usual, band }): uPlot.Series[] => [
        { label, stroke: color, width, ...(dash.length ? { dash: [...dash] } : {}), spanGaps: false, points: lonePoints(color) },
        ...(band ? [edge, edge] : []),
      ]),
    ],
    bands: lines.flatMap(({ color, band }, at) => {
      const own = columns[at] ?? 0;
      return band ? [{ series: [own + 1, own + 2] as [number, number], fill: `color-mix(in srgb, ${color} 18%, transparent)` }] : [];
    }),
  };
}

// Looked for once in each version of the data, since charts are drawn again whenever a line is pointed at.
const lone = new WeakMap<object, number[]>();

/** Points where there is no line: those between two gaps, and those that are alone. */
function lonePoints(color: string): uPlot.Series.Points {
  return {
    show: false,
    size: 5,
    fill: color,
    filter: (plot, index) => {
      const values = plot.data[index] ?? [];
      const found = lone.get(values) ?? isolated(values);
      lone.set(values, found);
      return found.length ? found : null;
    },
  };
}

/** A box that was drawn zooms both axes; one that is a stripe, the axis along which it was drawn. */
function select(plot: uPlot, selected: Chart["selected"]): void {
  const { left, top, width, height } = plot.select;
  if (width < 4 && height < 4) return;
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  const { clientWidth, clientHeight } = plot.over;
  const x: Range = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
  const y: Range = [plot.posToVal(top + height, "y"), plot.posToVal(top, "y")];
  selected(width < clientWidth ? x : undefined, height < clientHeight ? y : undefined);
}

/** Triangles at the edges, where values are no numbers. */
function drawEdges({ ctx, bbox, valToPos }: uPlot, edges: readonly EdgeMark[]): void {
  const size = 4 * devicePixelRatio;
  for (const { x, isAbove, color } of edges) {
    const at = valToPos(x, "x", true);
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    const [edge, tipAt] = isAbove ? [bbox.top + 2 * size, bbox.top] : [bbox.top + bbox.height - 2 * size, bbox.top + bbox.height];
    ctx.fillStyle = color;
    ctx.beginPath();
    ctx.moveTo(at - size, edge);
    ctx.lineTo(at + size, edge);
    ctx.lineTo(at, tipAt);
    ctx.fill();
  }
}

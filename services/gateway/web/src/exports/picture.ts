// A chart with its title and legend as shapes, which become an SVG or a PNG.

import type uPlot from "uplot";
import type { Line } from "$src/curves/series";
import type { DrawnTicks } from "$src/plots/drawing";
import { visible } from "$src/ui/visible";

type Point = readonly [x: number, y: number];

/** Something that is drawn, in pixels; `cut` where it must not go beyond the plot. */
export type Shape =
  | { readonly kind: "line"; readonly points: readonly Point[]; readonly color: string; readonly width: number; readonly dash: readonly number[]; readonly cut?: boolean }
  | { readonly kind: "dot"; readonly at: Point; readonly color: string; readonly radius: number; readonly cut: true }
  | { readonly kind: "area"; readonly points: readonly Point[]; readonly color: string; readonly cut: true }
  | { readonly kind: "text"; readonly at: Point; readonly text: string; readonly anchor: "start" | "middle" | "end"; readonly bold?: boolean };

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** The plot, to which lines are cut. */
  readonly plot: { readonly left: number; readonly top: number; readonly width: number; readonly height: number };
  readonly shapes: readonly Shape[];
  readonly colors: { readonly ground: string; readonly text: string };
}

const [HEAD, FOOT, ROW, LETTER, MOST_KEYS, DOT] = [28, 8, 18, 6.6, 60, 2.5] as const;

/** The picture of a chart as it is drawn now. */
export function pictureOf({ plot, ticks }: { plot: uPlot; ticks: DrawnTicks }, lines: readonly Line[], titles: { readonly title: string; readonly x: string }): Picture {
  const style = getComputedStyle(document.documentElement);
  const [ground, text, grid] = ["--ground", "--text", "--grid"].map((name) => style.getPropertyValue(name).trim());
  const { offsetLeft: left, offsetTop, clientWidth: width, clientHeight: height } = plot.over;
  const top = offsetTop + HEAD;
  const place = (x: number, y: number): Point => [left + plot.valToPos(x, "x"), top + plot.valToPos(y, "y")];
  const rule = (from: Point, to: Point): Shape => ({ kind: "line", points: [from, to], color: grid ?? "gray", width: 1, dash: [] });
  const keys = legend(lines, plot.width, HEAD + plot.height);
  const shapes: Shape[] = [
    { kind: "text", at: [8, 18], text: titles.title, anchor: "start", bold: true },
    { kind: "text", at: [left + width / 2, HEAD + plot.height - 4], text: titles.x, anchor: "middle" },
    ...ticks.x.flatMap(({ at, text }): Shape[] => {
      const x = left + plot.valToPos(at, "x");
      return [rule([x, top], [x, top + height]), { kind: "text", at: [x, top + height + 16], text, anchor: "middle" }];
    }),
    ...ticks.y.flatMap(({ at, text }): Shape[] => {
      const y = top + plot.valToPos(at, "y");
      return [rule([left, y], [left + width, y]), { kind: "text", at: [left - 6, y + 4], text, anchor: "end" }];
    }),
    ...lines.flatMap((line) => bandShape(line, place)),
    ...lines.flatMap((line) => lineShapes(line, place)),
    ...keys.shapes,
  ];
  const size = { width: plot.width, height: HEAD + plot.height + keys.height + FOOT };
  return { ...size, plot: { left, top, width, height }, shapes, colors: { ground: ground ?? "white", text: text ?? "black" } };
}

type Place = (x: number, y: number) => Point;

function bandShape({ x, band, color }: Line, place: Place): Shape[] {
  if (!band) return [];
  const edge = (values: readonly (number | null)[]) => x.flatMap((at, index) => (values[index] == null ? [] : [place(at, values[index])]));
  return [{ kind: "area", points: [...edge(band.high), ...edge(band.low).reverse()], color, cut: true }];
}

/** A line in the pieces that its gaps leave; a point that is alone is a dot. */
export function lineShapes({ x, y, color, dash, width = 1.5 }: Line, place: Place): Shape[] {
  const pieces: Point[][] = [[]];
  y.forEach((value, at) => {
    if (value === null) pieces.push([]);
    else pieces.at(-1)?.push(place(x[at] ?? 0, value));
  });
  return pieces.flatMap((points): Shape[] => {
    const [first] = points;
    if (!first) return [];
    return [points.length === 1 ? { kind: "dot", at: first, color, radius: DOT, cut: true } : { kind: "line", points, color, width, dash, cut: true }];
  });
}

/** The lines' names, in rows below the chart. */
function legend(lines: readonly Line[], width: number, top: number): { shapes: Shape[]; height: number } {
  let [x, y] = [8, top + ROW];
  const shapes: Shape[] = [];
  const shown = lines.slice(0, MOST_KEYS);
  const more: Line[] = lines.length > shown.length ? [{ label: `${lines.length - shown.length} more`, color: "transparent", dash: [], x: [], y: [] }] : [];
  for (const line of [...shown, ...more]) {
    const label = visible(line.label);
    const length = 30 + label.length * LETTER;
    if (x > 8 && x + length > width) [x, y] = [8, y + ROW];
    shapes.push({ kind: "line", points: [[x, y - 4], [x + 16, y - 4]], color: line.color, width: 2, dash: line.dash });
    shapes.push({ kind: "text", at: [x + 22, y], text: label, anchor: "start" });
    x += length + 8;
  }
  return { shapes, height: lines.length ? y - top + 4 : 0 };
}

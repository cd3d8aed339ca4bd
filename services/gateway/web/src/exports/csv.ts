// What a chart shows, as comma-separated values for programs that read tables.

import type { Curve, Line } from "$src/curves/series";

type Cell = number | string | null | undefined;

/** The points of curves as they were reported, one a row. */
export function curvesCsv(curves: readonly Curve[]): string {
  const rows = curves.flatMap(({ label, points }) =>
    points.steps.map((step, at): Cell[] => [label, step, new Date((points.times[at] ?? 0) * 1000).toISOString(), points.values[at]]),
  );
  return table(["series", "step", "time", "value"], rows);
}

/** Lines as they are drawn, with the bands around them. */
export function linesCsv(lines: readonly Line[], axisTitle: string): string {
  const rows = lines.flatMap(({ label, x, y, band }) => x.map((at, index): Cell[] => [label, at, y[index], band?.low[index], band?.high[index]]));
  return table(["series", axisTitle, "mean", "low", "high"], rows);
}

const table = (head: readonly string[], rows: readonly (readonly Cell[])[]): string => [head, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");

/** A value, quoted where it must be. A text that a spreadsheet would take for a formula gets an apostrophe before it. */
function cell(value: Cell): string {
  if (typeof value !== "string") return value === null || value === undefined ? "" : String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

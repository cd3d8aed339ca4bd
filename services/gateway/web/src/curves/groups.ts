// Several lines as one: their mean, and a band around it.

import type { Mark } from "$src/plots/marks";
import { valuesAt, type Line } from "./series";

export const BANDS = ["std", "range", "none"] as const;
/** What the band around a mean shows: its standard deviation, or from the least to the most. */
export type Band = (typeof BANDS)[number];

/** Places along x at which lines are put together; more of them nobody sees. */
const MOST_PLACES = 500;

/**
 * The mean of some lines, wherever at least one of them is.
 *
 * Lines are straight between their points, and end with them: a mean has the lines that are there.
 *
 * @param log Whether the band has only room above zero.
 */
export function together(lines: readonly Line[], { label, mark, band, log }: { label: string; mark: Mark; band: Band; log: boolean }): Line {
  const x = placesOf(lines);
  const columns = lines.map((line) => resampled(line, x));
  const [y, low, high]: (number | null)[][] = [[], [], []];
  for (let at = 0; at < x.length; at += 1) {
    const values = columns.flatMap((column) => column[at] ?? []);
    const { mean, least, most } = spread(values, band);
    y?.push(mean);
    low?.push(log && least !== null && least <= 0 ? mean : least);
    high?.push(most);
  }
  return { ...mark, label, x, y: y ?? [], ...(band === "none" ? {} : { band: { low: low ?? [], high: high ?? [] } }) };
}

/** All places where a line has a point; of very many, some. */
function placesOf(lines: readonly Line[]): number[] {
  const all = [...new Set(lines.flatMap(({ x }) => x))].sort((a, b) => a - b);
  if (all.length <= MOST_PLACES) return all;
  return Array.from({ length: MOST_PLACES }, (_, at) => all[Math.round((at * (all.length - 1)) / (MOST_PLACES - 1))] ?? 0);
}

/** The values of a line at some ascending places. */
function resampled({ x, y }: Line, places: readonly number[]): (number | undefined)[] {
  const [known, values]: [number[], number[]] = [[], []];
  y.forEach((value, at) => {
    if (value === null) return;
    known.push(x[at] ?? 0);
    values.push(value);
  });
  return valuesAt(known, values, places);
}

function spread(values: readonly number[], band: Band): { mean: number | null; least: number | null; most: number | null } {
  if (!values.length) return { mean: null, least: null, most: null };
  const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
  if (band === "range") return { mean, least: Math.min(...values), most: Math.max(...values) };
  const squares = values.reduce((sum, one) => sum + (one - mean) ** 2, 0);
  const deviation = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0;
  return { mean, least: mean - deviation, most: mean + deviation };
}

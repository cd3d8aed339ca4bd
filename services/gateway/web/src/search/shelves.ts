// Where the picture of a search has its dots: rungs are shelves from left to right, and the best trial of a shelf is on top.

import { groupBy } from "$src/api/grouping";
import type { Board, Bracket, Placed, Standing } from "./replay";

export interface Dot {
  readonly key: string;
  readonly x: number;
  readonly y: number;
  /** What the trial does; "went" where it has left for a higher rung. */
  readonly look: Standing | "went";
}

export interface Shelf {
  readonly rung: number;
  readonly x: number;
  /** Trials that came here. */
  readonly count: number;
  /** How many of them are not drawn. */
  readonly hidden: number;
  /** Height of the line that the last decision here compared with. */
  readonly line: number | undefined;
  readonly dots: readonly Dot[];
}

export interface Picture {
  readonly bracket: number;
  readonly width: number;
  /** Radius of a dot. */
  readonly radius: number;
  /** Half the width of a shelf. */
  readonly reach: number;
  readonly shelves: readonly Shelf[];
}

/** How large everything is. */
interface Sizes {
  readonly shelf: number;
  /** Distance of dots. */
  readonly row: number;
  readonly radius: number;
  readonly mostInRow: number;
}

export const HEIGHT = 280;
/** Few trials are drawn so large that their numbers can be read. */
const LARGE: Sizes = { shelf: 176, row: 19, radius: 9, mostInRow: 7 };
const SMALL: Sizes = { shelf: 132, row: 9, radius: 4, mostInRow: 11 };
const MOST_LARGE = 32;
/** Trials that have not reported stand below those that have. */
const GROUND = HEIGHT - 24;
const LOWEST = GROUND - 27;
const TOP = 28;
/** Dots of a shelf, where there are few shelves; a browser feels each change of many more together. */
const MOST_DOTS = 160;
const MOST_TOGETHER = 600;

/** The brackets of a board, each with its shelves. */
export function pictures(board: Board, smallerIsBetter: boolean): Picture[] {
  const trials = groupBy(board.trials, ({ bracket }) => bracket);
  const count = [...board.brackets.values()].reduce((sum, { rungs }) => sum + rungs.length, 0);
  const most = Math.min(MOST_DOTS, Math.ceil(MOST_TOGETHER / Math.max(1, count)));
  return [...board.brackets].sort(([a], [b]) => a - b).map(([number, bracket]) => {
    const here = trials.get(number) ?? [];
    const sizes = here.length > MOST_LARGE ? SMALL : LARGE;
    const shelves = shelvesOf(bracket, here, { smallerIsBetter, sizes, most });
    return { bracket: number, width: Math.max(1, shelves.length) * sizes.shelf, radius: sizes.radius, reach: sizes.shelf / 2 - 6, shelves };
  });
}

function shelvesOf(
  bracket: Bracket,
  trials: readonly Placed[],
  { smallerIsBetter, sizes, most }: { readonly smallerIsBetter: boolean; readonly sizes: Sizes; readonly most: number },
): Shelf[] {
  const height = scale(trials, smallerIsBetter);
  return bracket.rungs.map((rung, index) => {
    const x = sizes.shelf * (index + 0.5);
    const here = trials.filter((one) => one.rung === rung || one.metrics.has(rung));
    const shown = bestOf(here, rung, { sign: smallerIsBetter ? 1 : -1, most });
    const threshold = bracket.thresholds.get(index);
    return {
      rung,
      x,
      count: here.length,
      hidden: here.length - shown.length,
      line: threshold === undefined ? undefined : height(threshold),
      dots: spread(shown, rung, { x, height, sizes }),
    };
  });
}

/** The best trials of a rung, best first, as many as are drawn. */
function bestOf(trials: readonly Placed[], rung: number, { sign, most }: { readonly sign: number; readonly most: number }): Placed[] {
  const costs = Float64Array.from(trials, ({ metrics }) => sign * finite(metrics.get(rung), sign));
  // Of thousands few are drawn: those above the worst that is drawn are put in order alone.
  const worst = costs.length > most ? (costs.slice().sort()[most - 1] ?? Infinity) : Infinity;
  return [...trials.keys()]
    .filter((at) => (costs[at] ?? Infinity) <= worst)
    .sort((a, b) => (costs[a] ?? 0) - (costs[b] ?? 0) || a - b)
    .slice(0, most)
    .flatMap((at) => trials[at] ?? []);
}

/** Values that are no numbers are the worst. */
const finite = (value: number | undefined, sign: number): number => (value === undefined || !Number.isFinite(value) ? sign * Infinity : value);

/** Heights of values: the best on top, and the worst tenth, which may be far away, at the bottom. */
function scale(trials: readonly Placed[], smallerIsBetter: boolean): (value: number | undefined) => number {
  const sign = smallerIsBetter ? 1 : -1;
  const found: number[] = [];
  for (const { metrics } of trials) for (const value of metrics.values()) if (Number.isFinite(value)) found.push(sign * value);
  const values = Float64Array.from(found).sort();
  const best = values[0] ?? 0;
  const worst = values[Math.ceil((values.length - 1) * 0.9)] ?? best;
  return (value) => {
    if (value === undefined) return GROUND;
    const share = worst > best ? (finite(value, sign) * sign - best) / (worst - best) : 0;
    return TOP + Math.min(1, Math.max(0, share)) * (LOWEST - TOP);
  };
}

/** Dots of nearly one height stand side by side. */
function spread(
  trials: readonly Placed[],
  rung: number,
  { x, height, sizes }: { readonly x: number; readonly height: (value: number | undefined) => number; readonly sizes: Sizes },
): Dot[] {
  const rows = new Map<number, number>();
  return trials.map((one) => {
    const row = Math.round((height(one.metrics.get(rung)) - TOP) / sizes.row);
    const place = rows.get(row) ?? 0;
    rows.set(row, place + 1);
    const column = place % sizes.mostInRow;
    const offset = Math.ceil(column / 2) * (column % 2 ? 1 : -1) * sizes.row;
    return { key: one.key, x: x + offset, y: TOP + row * sizes.row, look: one.rung === rung ? one.standing : "went" };
  });
}

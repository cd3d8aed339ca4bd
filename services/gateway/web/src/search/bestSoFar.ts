// The best value of a search's metric as time went on.

import type { Points } from "$src/curves/series";
import type { Moves } from "./moves";

/** A point for each report among the first entries that was better than all before; by the position of the entry and its time. */
export function bestSoFar(moves: Moves, entries: number, smallerIsBetter: boolean): Points {
  const [steps, values, times]: [number[], number[], number[]] = [[], [], []];
  const add = (entry: number, value: number, secondsBefore = 0) => {
    steps.push(entry + 1);
    values.push(value);
    times.push((moves.times[entry] ?? 0) / 1000 - secondsBefore);
  };
  let best: number | undefined;
  for (let entry = 0, move = 0; entry < entries; entry += 1) {
    for (const end = moves.ends[entry] ?? move; move < end; move += 1) {
      const metric = moves.metrics[move] ?? NaN;
      if (!Number.isFinite(metric) || (best !== undefined && (smallerIsBetter ? metric >= best : metric <= best))) continue;
      if (best !== undefined) add(entry, best, 1e-3); // the line is level up to its step
      add(entry, (best = metric));
    }
  }
  if (best !== undefined && entries > 0) add(entries - 1, best);
  return { steps, values, times };
}

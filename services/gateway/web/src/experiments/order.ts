// Orders of experiments: those that the server keeps, and those by values of any metric, which it does not know with the
// experiments: of the rows of one page.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { cellKey, type CellValue } from "./cellValues.svelte";
import { BEST, COLUMNS, type Column } from "./columns";

export const NEWEST_FIRST = "number desc";

const FIELDS: ReadonlySet<string> = new Set(["number", "name", ...COLUMNS.flatMap(({ field }) => field ?? [])]);

/** An order such as "name desc" as the server has it; newest first where it keeps no such order. */
export function serverOrder(orderBy: string): string {
  const [field = "", direction] = orderBy.split(" ");
  if (!FIELDS.has(field)) return NEWEST_FIRST;
  const order = `${field}${direction === "desc" ? " desc" : ""}`;
  // The best of each metric for itself: values of two metrics say nothing to each other.
  return field === BEST_ORDER ? `searcher_metric, ${order}` : order;
}

/** What the server orders by the best validation. */
export const BEST_ORDER = COLUMNS.find(({ id }) => id === BEST)?.field ?? "";

/** The column of metrics that an order such as "max:validation%2Faccuracy desc" goes by; nothing where the server keeps the order. */
export function metricColumnOf(orderBy: string, columns: readonly Column[]): Column | undefined {
  const [id] = orderBy.split(" ");
  return columns.find((one) => one.id === id && one.metric);
}

/** Rows by the values of a column of a metric, the smallest first or last. Those without a value come last. */
export function sortedByValue(rows: readonly Experiment[], column: Column, orderBy: string, values: ReadonlyMap<string, CellValue | undefined>): Experiment[] {
  const turned = orderBy.endsWith(" desc");
  const value = (one: Experiment) => values.get(cellKey(one.experimentId, column.id))?.value;
  return [...rows].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === undefined || right === undefined) return Number(left === undefined) - Number(right === undefined);
    return turned ? right - left : left - right;
  });
}

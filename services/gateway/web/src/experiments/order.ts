// Orders of experiments: those that the server keeps, and those by values of metrics, which it does not know with the
// experiments: of the rows of one page.

import type { Experiment } from "$gen/resolute/api/experiments/v1/experiment_pb.js";
import { cellKey, type CellValue } from "./cellValues.svelte";
import { COLUMNS, type Column } from "./columns";

export const NEWEST_FIRST = "number desc";

const FIELDS: ReadonlySet<string> = new Set(["number", "name", ...COLUMNS.flatMap(({ field }) => field ?? [])]);

/** An order such as "name desc" as the server has it; newest first where it keeps no such order. */
export function serverOrder(orderBy: string): string {
  const [field = "", direction] = orderBy.split(" ");
  return FIELDS.has(field) ? `${field}${direction === "desc" ? " desc" : ""}` : NEWEST_FIRST;
}

/** The column of metrics that an order such as "best desc" goes by; nothing where the server keeps the order. */
export function metricColumnOf(orderBy: string, columns: readonly Column[]): Column | undefined {
  const [id] = orderBy.split(" ");
  return columns.find((one) => one.id === id && !one.field && one.isMetric);
}

/**
 * Rows by the values of a column. The best come first, of each metric for itself, in the column of best values; the
 * smallest in others. Those without a value come last.
 */
export function sortedByValue(rows: readonly Experiment[], column: Column, orderBy: string, values: ReadonlyMap<string, CellValue | undefined>): Experiment[] {
  const turned = orderBy.endsWith(" desc");
  const value = (one: Experiment) => values.get(cellKey(one.experimentId, column.id))?.value;
  return [...rows].sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === undefined || right === undefined) return Number(left === undefined) - Number(right === undefined);
    if (column.metric) return turned ? right - left : left - right;
    if (a.searcherMetric !== b.searcherMetric) return a.searcherMetric < b.searcherMetric ? -1 : 1;
    return a.smallerIsBetter === turned ? right - left : left - right;
  });
}

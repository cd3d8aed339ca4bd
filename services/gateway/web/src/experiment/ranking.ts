// The order of trials, which the server keeps.

import { readMetricColumn, type MetricColumn } from "$src/columns/metricColumn";

/** Orders of a table of trials, as the URL has them, in the server's words. */
const FIELDS: Readonly<Record<string, string>> = {
  number: "number",
  best: "best_validation",
  last: "last_validation",
  steps: "reported_steps",
  rate: "steps_per_second",
  state: "state",
  restarts: "restarts",
};

/** An order such as "best desc" as the server has it; by number where there is no such column. */
export function serverOrder(orderBy: string): string {
  const [column = "", direction] = orderBy.split(" ");
  return `${FIELDS[column] ?? "number"}${direction === "desc" ? " desc" : ""}`;
}

/** An order by a metric that has a column, such as "max:validation%2Faccuracy desc". */
export interface MetricOrder {
  readonly column: MetricColumn;
  readonly descending: boolean;
}

/** The metric that an order goes by; nothing where it goes by what trials have themselves. */
export function metricOrder(orderBy: string): MetricOrder | undefined {
  const [id = "", direction] = orderBy.split(" ");
  const column = readMetricColumn(id);
  return column && { column, descending: direction === "desc" };
}

/** The order that begins with the best trial. */
export const bestFirst = (smallerIsBetter: boolean): string => (smallerIsBetter ? "best" : "best desc");

/** How many trials are wanted, as "10" or "25%" of some; ten where it says nothing. */
export function wantedCount(text: string, of: number, most: number): number {
  const [, number, percent] = /^(\d{1,6})(%?)$/.exec(text.trim()) ?? [];
  const count = number ? (percent ? Math.ceil((Number(number) / 100) * of) : Number(number)) : 10;
  return Math.min(most, Math.max(1, count));
}

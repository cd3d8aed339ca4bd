// Columns of the table of experiments, and which of them a person wants.

import { type MetricColumn, readMetricColumns } from "$src/columns/metricColumn";

export interface Column {
  readonly id: string;
  readonly label: string;
  /** What the server orders by; nothing where it cannot. */
  readonly field?: string;
  readonly isNumber?: boolean;
  /** Whether it is left out on narrow screens. */
  readonly isMinor?: boolean;
  /** Whether it is left out on all but wide screens, unless somebody chose columns. */
  readonly isWide?: boolean;
  /** The metric of which it shows a value; nothing for other columns. */
  readonly metric?: MetricColumn;
}

/** The column with the best validation. */
export const BEST = "best";

/** All columns but the number and the name, which are always shown. */
export const COLUMNS: readonly Column[] = [
  { id: "state", label: "State", field: "state" },
  { id: "progress", label: "Progress", field: "progress" },
  { id: "left", label: "Left", isMinor: true },
  { id: "rate", label: "Steps/s", isNumber: true, isMinor: true, isWide: true },
  { id: BEST, label: "Best", field: "best_validation", isNumber: true, isMinor: true },
  { id: "trials", label: "Trials", isNumber: true, isWide: true },
  { id: "searcher", label: "Searcher", isMinor: true, isWide: true },
  { id: "owner", label: "Owner", field: "owner_name", isMinor: true },
  { id: "workspace", label: "Workspace", field: "workspace_name", isMinor: true },
  { id: "project", label: "Project", field: "project_name", isMinor: true },
  { id: "submitted", label: "Submitted", field: "create_time", isMinor: true },
  { id: "ended", label: "Ended", field: "end_time", isMinor: true },
  { id: "duration", label: "Duration", isMinor: true, isWide: true },
];

const HIDDEN_AT_FIRST = new Set(["workspace", "project", "ended"]);
const NONE = "none";

export const USUAL = written(COLUMNS.filter(({ id }) => !HIDDEN_AT_FIRST.has(id)));

/** Reads a list of columns, such as "state,best,max:validation%2Faccuracy"; unknown ones are left out. Empty for the usual ones. */
export function chosenColumns(list: string): readonly Column[] {
  const ids = new Set((list || USUAL).split(","));
  const metrics = readMetricColumns(list).map((metric): Column => ({ id: metric.id, label: metric.label, isNumber: true, isMinor: true, metric }));
  return [...COLUMNS.filter(({ id }) => ids.has(id)), ...metrics];
}

/** The list of some columns. */
export function written(columns: readonly Column[]): string {
  return columns.map(({ id }) => id).join(",") || NONE;
}

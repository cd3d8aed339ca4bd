// Columns of lists with a value of any metric: the smallest, the largest or the last one.

import type { Summary } from "$gen/resolute/api/metrics/v1/summary_pb.js";
import { metricLabel, parseMetric, type Metric } from "$src/plots/metric";

export const CHOICES = ["min", "max", "last"] as const;
export type Choice = (typeof CHOICES)[number];

export interface MetricColumn {
  /** As the URL has it, such as "max:validation%2Faccuracy". */
  readonly id: string;
  /** For people, such as "max validation/accuracy". */
  readonly label: string;
  readonly metric: Metric;
  readonly choice: Choice;
}

/** More columns than these are left out: each asks the server. */
export const MOST_METRIC_COLUMNS = 8;

export function metricColumn(metric: Metric, choice: Choice): MetricColumn {
  const label = metricLabel(metric);
  return { id: `${choice}:${encodeURIComponent(label)}`, label: `${choice} ${label}`, metric, choice };
}

/** Reads the id of a column; nothing where it is none. */
export function readMetricColumn(id: string): MetricColumn | undefined {
  const choice = CHOICES.find((one) => id.startsWith(`${one}:`));
  if (!choice) return undefined;
  try {
    const metric = parseMetric(decodeURIComponent(id.slice(choice.length + 1)));
    return metric?.name ? metricColumn(metric, choice) : undefined;
  } catch {
    return undefined; // no text
  }
}

/** Reads a list of ids, such as a URL has; what is wrong there is left out. */
export function readMetricColumns(list: string): MetricColumn[] {
  const found = new Map(list.split(",").flatMap((id) => readMetricColumn(id) ?? []).map((one) => [one.id, one]));
  return [...found.values()].slice(0, MOST_METRIC_COLUMNS);
}

/** What a column shows of a metric of a trial. */
export function chosenValue({ min, max, lastNumber }: Pick<Summary, "min" | "max" | "lastNumber">, choice: Choice): number | undefined {
  return { min, max, last: lastNumber }[choice];
}

// The name of a metric.

import { decoded } from "./ranges";

export interface Metric {
  readonly group: string;
  readonly name: string;
}

export const metricLabel = ({ group, name }: Metric): string => `${group}/${name}`;

/** Reads what `metricLabel` wrote. */
export function parseMetric(label: string): Metric | undefined {
  const at = label.indexOf("/");
  return at > 0 ? { group: label.slice(0, at), name: label.slice(at + 1) } : undefined;
}

/** Reads a list of labels, such as "training%2Floss,validation%2Floss"; what is wrong there is left out, and each comes once. */
export function readMetrics(list: string): Metric[] {
  const labels = new Set(list.split(",").flatMap((one) => decoded(one) || []));
  return [...labels].flatMap((label) => parseMetric(label) ?? []);
}

export const writtenMetrics = (metrics: readonly Metric[]): string => metrics.map((one) => encodeURIComponent(metricLabel(one))).join(",");

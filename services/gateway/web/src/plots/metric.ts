// The name of a metric.

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

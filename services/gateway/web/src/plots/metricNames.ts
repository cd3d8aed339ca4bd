// Which metrics a trial has reported.

import { ValueKind } from "$gen/resolute/api/metrics/v1/summary_pb.js";
import { services, within } from "$src/api/services";

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

/** As many as one trial may have. */
const LIMIT = 10_000;
const { compare } = new Intl.Collator();

/**
 * Lists the metrics of some trials that are numbers, each once, by group and name.
 *
 * @param tell Told the first ones as soon as they are known, where there are more.
 */
export async function listMetrics(
  trialIds: readonly string[],
  signal: AbortSignal,
  tell: (first: Metric[]) => void = () => undefined,
): Promise<Metric[]> {
  const found = new Map<string, Metric>();
  const sorted = () => [...found].sort(([a], [b]) => compare(a, b)).map(([, metric]) => metric);
  let pageToken = "";
  do {
    const page = await services.metrics.listSummaries({ trialIds: [...trialIds], pageSize: 1000, pageToken }, within(signal));
    for (const { group, name, lastKind } of page.summaries) {
      if (lastKind === ValueKind.NUMBER) found.set(metricLabel({ group, name }), { group, name });
    }
    const isFirst = !pageToken;
    pageToken = page.nextPageToken;
    if (isFirst && pageToken) tell(sorted());
  } while (pageToken && found.size < LIMIT);
  return sorted();
}

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

const LIMIT = 5000;

/** Lists the metrics of some trials that are numbers, each once, by group and name. */
export async function listMetrics(trialIds: readonly string[], signal: AbortSignal): Promise<Metric[]> {
  const found = new Map<string, Metric>();
  let pageToken = "";
  do {
    const page = await services.metrics.listSummaries({ trialIds: [...trialIds], pageSize: 1000, pageToken }, within(signal));
    for (const { group, name, lastKind } of page.summaries) {
      if (lastKind === ValueKind.NUMBER) found.set(metricLabel({ group, name }), { group, name });
    }
    pageToken = page.nextPageToken;
  } while (pageToken && found.size < LIMIT);
  return [...found.values()].sort((a, b) => metricLabel(a).localeCompare(metricLabel(b)));
}

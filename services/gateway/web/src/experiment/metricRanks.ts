// Which trials of an experiment come where, by any metric: the metrics service orders them.

import { services, within } from "$src/api/services";
import type { MetricOrder } from "./ranking";

/** What the metrics service calls the value of a column. */
const FIELDS = { min: "min", max: "max", last: "last_number" } as const;
const MOST_A_PAGE = 1000;

/** Ids of trials that have a metric, in its order, after the first ones. */
export async function rankedTrials(
  experimentId: string,
  { column, descending }: MetricOrder,
  { skip, count, signal }: { readonly skip: number; readonly count: number; readonly signal: AbortSignal },
): Promise<string[]> {
  const { group, name } = column.metric;
  const orderBy = `${FIELDS[column.choice]}${descending ? " desc" : ""}`;
  const request = { experimentId, groups: [group], names: [name], orderBy };
  const found: string[] = [];
  let pageToken = "";
  do {
    const pageSize = Math.min(MOST_A_PAGE, skip + count - found.length);
    const page = await services.metrics.listSummaries({ ...request, pageSize, pageToken }, within(signal));
    found.push(...page.summaries.map(({ trialId }) => trialId));
    pageToken = page.nextPageToken;
  } while (pageToken && found.length < skip + count);
  return found.slice(skip, skip + count);
}

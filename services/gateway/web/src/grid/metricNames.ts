// Which metrics a trial has reported.

import { ValueKind } from "$gen/resolute/api/metrics/v1/summary_pb.js";
import { services, within } from "$src/api/services";
import { metricLabel, type Metric } from "$src/plots/metric";

/** As many as one trial may have. */
const LIMIT = 10_000;
/** The first ones come soon, to be shown; after them, what they are shown with goes first. */
const [FIRST, PAGE, REST_MS] = [100, 1000, 1000];
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
    const page = await services.metrics.listSummaries({ trialIds: [...trialIds], pageSize: pageToken ? PAGE : FIRST, pageToken }, within(signal));
    for (const { group, name, lastKind } of page.summaries) {
      if (lastKind === ValueKind.NUMBER) found.set(metricLabel({ group, name }), { group, name });
    }
    const isFirst = !pageToken;
    pageToken = page.nextPageToken;
    if (isFirst && pageToken) {
      tell(sorted());
      await rest(signal);
    }
  } while (pageToken && found.size < LIMIT);
  return sorted();
}

/** Leaves the server and the tab to others for a moment. */
async function rest(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const wait = setTimeout(resolve, REST_MS);
    signal.addEventListener("abort", () => (clearTimeout(wait), resolve()), { once: true });
  });
}

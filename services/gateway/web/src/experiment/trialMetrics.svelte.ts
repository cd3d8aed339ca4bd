// Values of metrics for the trials of a page of the table.

import type { Trial } from "$gen/resolute/api/experiments/v1/trial_pb.js";
import { services, within } from "$src/api/services";
import { chosenValue, metricColumn, type MetricColumn } from "$src/columns/metricColumn";

const key = (trialId: string, columnId: string): string => `${trialId} ${columnId}`;

export class TrialMetrics {
  #values = $state.raw<ReadonlyMap<string, number | undefined>>(new Map());

  /** The value of a trial in a column; nothing where it has none, or is not known yet. */
  of({ trialId }: Trial, column: MetricColumn): number | undefined {
    return this.#values.get(key(trialId, column.id));
  }

  /** Reads the values of some trials; returns what ends that. What was read before stays until then. */
  read(trials: readonly Trial[], columns: readonly MetricColumn[]): () => void {
    const ending = new AbortController();
    if (trials.length && columns.length) {
      this.#load(trials, columns, ending.signal).catch(() => undefined); // the next change of a trial asks again
    }
    return () => ending.abort();
  }

  async #load(trials: readonly Trial[], columns: readonly MetricColumn[], signal: AbortSignal): Promise<void> {
    const groups = [...new Set(columns.map(({ metric }) => metric.group))];
    const names = [...new Set(columns.map(({ metric }) => metric.name))];
    const request = { trialIds: trials.map(({ trialId }) => trialId), groups, names, pageSize: 1000 };
    const found = new Map<string, number | undefined>();
    let pageToken = "";
    do {
      const page = await services.metrics.listSummaries({ ...request, pageToken }, within(signal));
      for (const one of page.summaries) {
        for (const { choice } of columns) found.set(key(one.trialId, metricColumn(one, choice).id), chosenValue(one, choice));
      }
      pageToken = page.nextPageToken;
    } while (pageToken);
    this.#values = found;
  }
}

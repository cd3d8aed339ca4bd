// What a search decided about one trial, and why.

import type { LogEntry } from "$gen/resolute/api/searcher/v1/event_pb.js";
import { services, within } from "$src/api/services";

/** Most entries that are read of one trial. */
const MOST = 1000;

/**
 * Reads the entries of a trial, newest first, back to the one that created it.
 *
 * Of a long log the server looks at some thousands of entries a page, and a page of a trial that has been quiet for long is empty.
 */
export async function readDecisions(
  { searchId, trialKey }: { searchId: string; trialKey: string },
  signal: AbortSignal,
): Promise<readonly LogEntry[]> {
  const found: LogEntry[] = [];
  for (let pageToken = ""; ; ) {
    const request = { searchId, trialKeys: [trialKey], orderBy: "sequence desc", pageSize: MOST, pageToken };
    const page = await services.searcher.listEvents(request, within(signal));
    found.push(...page.entries);
    pageToken = page.nextPageToken;
    if (!pageToken || found.length >= MOST || page.entries.some((entry) => creates(entry, trialKey))) return found;
  }
}

function creates(entry: LogEntry, trialKey: string): boolean {
  return entry.operations.some(({ kind }) => kind.case === "create" && kind.value.trialKey === trialKey);
}

// The log of a search, from its beginning, as it grows.

import type { LogEntry } from "$gen/resolute/api/searcher/v1/event_pb.js";
import { failureOf } from "$client/errors.js";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { searchSubscription } from "$src/live/subscription";

const PAGE = 1000;
/** Longer logs are shown up to here. */
export const MOST_ENTRIES = 100_000;

export class SearchHistory {
  entries = $state.raw<readonly LogEntry[]>([]);
  /** Whether all that had happened when the view was opened is here. */
  loaded = $state(false);
  problem = $state("");
  readonly #searchId: string;
  #changed = false;
  #busy = false;

  constructor(searchId: string) {
    this.#searchId = searchId;
  }

  /** Loads and follows the log; returns what ends that. */
  follow(): () => void {
    const ending = new AbortController();
    const end = watch(searchSubscription(this.#searchId, () => void this.#catchUp(ending.signal)));
    void this.#catchUp(ending.signal);
    return () => {
      ending.abort();
      end();
    };
  }

  /** Loads what is new; a search that changes faster than that is asked again when the answer is here. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    this.#changed = true;
    if (this.#busy) return;
    this.#busy = true;
    try {
      while (this.#changed && !signal.aborted) {
        this.#changed = false;
        await this.#loadNew(signal);
      }
      this.loaded = true;
      this.problem = "";
    } catch (error) {
      if (!signal.aborted) this.problem = failureOf(error).message;
    }
    this.#busy = false;
  }

  async #loadNew(signal: AbortSignal): Promise<void> {
    const afterSequence = this.entries.at(-1)?.event?.sequence ?? 0n;
    let pageToken = "";
    let news: LogEntry[] = [];
    let isWhole = false;
    while (!isWhole) {
      const request = { searchId: this.#searchId, pageSize: PAGE, afterSequence, pageToken };
      const page = await services.searcher.listEvents(request, within(signal));
      news = [...news, ...page.entries];
      pageToken = page.nextPageToken;
      isWhole = !pageToken || this.entries.length + news.length >= MOST_ENTRIES;
      // What is drawn of a log takes as long as the log is: it is drawn again once as much has come as there was.
      if (!news.length || (!isWhole && news.length < this.entries.length)) continue;
      this.entries = [...this.entries, ...news];
      news = [];
    }
  }
}

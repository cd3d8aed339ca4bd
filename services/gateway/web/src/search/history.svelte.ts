// The log of a search in brief, from its beginning, as it grows.

import type { ListMovesResponse } from "$gen/resolute/api/searcher/v1/searcher_service_pb.js";
import { failureOf } from "$client/errors.js";
import { services, within } from "$src/api/services";
import { watch } from "$src/live/live.svelte";
import { searchSubscription } from "$src/live/subscription";
import { Moves } from "./moves";

const PAGE = 10_000;
/** Longer logs are shown up to here. */
export const MOST_ENTRIES = 200_000;

export class SearchHistory {
  readonly moves = new Moves();
  /** Entries that are here: what is derived of the moves depends on it. */
  length = $state(0);
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
    const ask = (afterSequence: number) =>
      services.searcher.listMoves({ searchId: this.#searchId, pageSize: PAGE, afterSequence: BigInt(afterSequence) }, within(signal));
    for (let next: ReturnType<typeof ask> | undefined = ask(this.moves.length); next; ) {
      const page: ListMovesResponse = await next;
      const end = this.moves.length + page.times.length;
      // The server reads on while these are drawn.
      next = page.nextPageToken && end < MOST_ENTRIES ? ask(end) : undefined;
      this.moves.add(page);
      this.length = this.moves.length;
    }
  }
}
